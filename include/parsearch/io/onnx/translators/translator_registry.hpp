#pragma once
/// The registry of translators: what turns a node of an ONNX network into operators of the library.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/core/error.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx {

class translation;

/// Translators by domain and type. A value: copy `builtin_operators()` and add to it.
///
///     operators known = builtin_operators();
///     known.add("com.mine", "FusedThing", [](translation& t) {
///         t.emit(ops::linear{.out = t.attribute("units", std::int64_t{0})}, t.input(0));
///     });
class operators {
  public:
    using translator = std::function<void(translation&)>;

    /// Adds a translator; replaces the one that was there. "ai.onnx" and the empty name are one domain.
    operators& add(std::string_view domain, std::string_view type, translator f) {
        if (type.empty()) throw invalid_input("operators::add: a translator of domain '", domain, "' has no type: must name one");
        if (!f) throw invalid_input("operators::add: the translator of '", domain, "' '", type, "' is empty: must be callable");
        known_.insert_or_assign(key{canonical(domain), std::string(type)}, std::move(f));
        return *this;
    }
    /// The same for several types that one function translates.
    operators& add(std::string_view domain, std::initializer_list<std::string_view> types, translator const& f) {
        for (auto const t : types) add(domain, t, f);
        return *this;
    }

    /// The translator of `type`, or null. Complexity: O(log size).
    [[nodiscard]] translator const* find(std::string_view domain, std::string_view type) const {
        auto const at = known_.find(key{canonical(domain), std::string(type)});
        return at == known_.end() ? nullptr : &at->second;
    }
    [[nodiscard]] translator const* find(node const& n) const { return find(n.domain, n.type); }

    [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }

  private:
    using key = std::pair<std::string, std::string>;
    [[nodiscard]] static std::string canonical(std::string_view domain) { return domain == "ai.onnx" ? std::string() : std::string(domain); }
    std::map<key, translator> known_;
};

/// The message for a node that no translator knows.
[[nodiscard]] inline std::string unknown_operator(node const& n) {
    return text(shown(n), ": operator '", n.type, "' of domain '", n.domain, "', version ", n.version,
                ", is unknown. Register it with operators.add(\"", n.domain, "\", \"", n.type,
                "\", [](io::onnx::translation& t) { t.emit(ops::..., t.input(0)); }), "
                "or set replicate_unknown to run such operators whole on one device");
}

} // namespace parsearch::io::onnx

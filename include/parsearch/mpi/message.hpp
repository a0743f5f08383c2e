#pragma once
/// Values as bytes, for messages between ranks and for checkpoints.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::space {

/// As Boost.Serialization wants it.
template <class Archive> void serialize(Archive& a, configuration& c, unsigned) { a& c.rank& c.degree& c.stride& c.start& c.listed; }

} // namespace parsearch::space

namespace parsearch {

template <class Archive, class S, class C> void serialize(Archive& a, search_result<S, C>& r, unsigned) {
    a& r.best& r.cost& r.lower_bound& r.stats& r.reason& r.ended;
}

} // namespace parsearch

namespace parsearch::mpi {

namespace detail {
template <class T> inline constexpr bool is_optional = false;
template <class T> inline constexpr bool is_optional<std::optional<T>> = true;
template <class T> inline constexpr bool is_tuple = false;
template <class... Ts> inline constexpr bool is_tuple<std::tuple<Ts...>> = true;
template <class A, class B> inline constexpr bool is_tuple<std::pair<A, B>> = true;

template <class T>
concept Growing = std::ranges::range<T> && requires(T& t, std::ranges::range_value_t<T> v) {
    t.clear();
    t.push_back(std::move(v));
};
template <class T> inline constexpr bool is_plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;
/// Its elements are one run of bytes.
template <class T>
concept Packed = Growing<T> && std::ranges::contiguous_range<T> && is_plain<std::ranges::range_value_t<T>> && requires(T& t) { t.resize(1U); };
} // namespace detail

/// Writes values as bytes: `out & a & b`. An archive as of Boost.Serialization, as far as that goes: a type that is neither trivially copyable, nor a
/// container with `push_back`, an optional, a pair or a tuple of such says what it is of by `value.serialize(archive, 0)` or by a function
/// `serialize(archive, value, 0)` of its namespace. What is trivially copyable must hold no pointers. The bytes are those of this kind of machine.
class writer {
  public:
    template <class T> writer& operator&(T const& value) {
        if constexpr (detail::is_optional<T>) {
            *this& value.has_value();
            if (value) *this&* value;
        } else if constexpr (detail::is_tuple<T>) {
            std::apply([&](auto const&... parts) { (void(*this & parts), ...); }, value);
        } else if constexpr (detail::Growing<T>) {
            *this& static_cast<std::uint64_t>(std::ranges::distance(value));
            if constexpr (detail::Packed<T>)
                bytes_.append(reinterpret_cast<char const*>(value.data()), value.size() * sizeof(std::ranges::range_value_t<T>));
            else
                for (auto const& each : value) *this& static_cast<std::ranges::range_value_t<T> const&>(each);
        } else if constexpr (requires { const_cast<T&>(value).serialize(*this, 0U); }) { // which only reads here
            const_cast<T&>(value).serialize(*this, 0U);
        } else if constexpr (detail::is_plain<T>) {
            bytes_.append(reinterpret_cast<char const*>(&value), sizeof value);
        } else {
            serialize(*this, const_cast<T&>(value), 0U);
        }
        return *this;
    }
    writer& operator&(std::string const& value) {
        *this& static_cast<std::uint64_t>(value.size());
        bytes_ += value;
        return *this;
    }

    [[nodiscard]] std::string take() noexcept { return std::exchange(bytes_, {}); }

  private:
    std::string bytes_;
};

/// Reads what a `writer` has written. Refers to the bytes. Throws `invalid_input` where they end too early.
class reader {
  public:
    explicit reader(std::string_view bytes) : left_(bytes) {}

    template <class T> reader& operator&(T& value) {
        if constexpr (detail::is_optional<T>) {
            if (next<bool>()) *this& value.emplace();
            else value.reset();
        } else if constexpr (detail::is_tuple<T>) {
            std::apply([&](auto&... parts) { (void(*this & parts), ...); }, value);
        } else if constexpr (detail::Growing<T>) {
            value.clear();
            if constexpr (detail::Packed<T>) {
                constexpr auto each = sizeof(std::ranges::range_value_t<T>);
                auto const count = next<std::uint64_t>();
                auto const from = cut(count > left_.size() ? count : count * each); // the product may overflow
                value.resize(static_cast<std::size_t>(count));
                if (count > 0) std::memcpy(static_cast<void*>(value.data()), from.data(), from.size());
            } else
                for (auto count = next<std::uint64_t>(); count > 0; --count) value.push_back(next<std::ranges::range_value_t<T>>());
        } else if constexpr (requires { value.serialize(*this, 0U); }) {
            value.serialize(*this, 0U);
        } else if constexpr (detail::is_plain<T>) {
            auto const from = cut(sizeof value);
            std::memcpy(static_cast<void*>(&value), from.data(), sizeof value);
        } else {
            serialize(*this, value, 0U);
        }
        return *this;
    }
    reader& operator&(std::string& value) {
        value = cut(next<std::uint64_t>());
        return *this;
    }

    /// The next value, of a type that can be made of nothing.
    template <class T> [[nodiscard]] T next() {
        T value{};
        *this& value;
        return value;
    }
    [[nodiscard]] bool ended() const noexcept { return left_.empty(); }

  private:
    [[nodiscard]] std::string_view cut(std::uint64_t count) {
        if (count > left_.size()) throw invalid_input("a message or checkpoint ends ", count - left_.size(), " bytes too early");
        auto const out = left_.substr(0, static_cast<std::size_t>(count));
        left_.remove_prefix(static_cast<std::size_t>(count));
        return out;
    }

    std::string_view left_;
};

/// An exception that goes to another rank: of its type there remain `invalid_input`, `interrupted` and `std::bad_alloc`; others become a
/// `std::runtime_error` with their text.
struct failure {
    enum class kind : std::uint8_t { none, invalid, interrupted, memory, other };
    kind what = kind::none;
    std::string text;

    failure() = default;
    explicit failure(std::exception_ptr const& e) {
        if (!e) return;
        try {
            std::rethrow_exception(e);
        } catch (invalid_input const& x) {
            what = kind::invalid;
            text = x.what();
        } catch (parsearch::interrupted const&) {
            what = kind::interrupted;
        } catch (std::bad_alloc const&) {
            what = kind::memory;
        } catch (std::exception const& x) {
            what = kind::other;
            text = x.what();
        } catch (...) {
            what = kind::other;
            text = "an exception of unknown type";
        }
    }
    template <class Archive> void serialize(Archive& a, unsigned) { a& what& text; }

    [[nodiscard]] std::exception_ptr pointer() const {
        switch (what) {
        case kind::none: break;
        case kind::invalid: return std::make_exception_ptr(invalid_input(std::string_view(text)));
        case kind::interrupted: return std::make_exception_ptr(parsearch::interrupted());
        case kind::memory: return std::make_exception_ptr(std::bad_alloc());
        case kind::other: return std::make_exception_ptr(std::runtime_error(text));
        }
        return nullptr;
    }
    void raise() const {
        if (auto const e = pointer()) std::rethrow_exception(e);
    }
};

} // namespace parsearch::mpi

#pragma once
// Strict reading of JSON documents: what the library's formats share. Writing: io/json/json_writer.hpp.

#include <parsearch/io/json/json_reader.hpp>

namespace parsearch::io::detail {

/// Characters of a text; what the parser has taken of them is counted.
struct counted_char {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = char const*;
    using reference = char const&;
    char const* at = nullptr;
    std::size_t* taken = nullptr;

    char const& operator*() const noexcept { return *at; }
    counted_char& operator++() noexcept {
        ++at;
        ++*taken;
        return *this;
    }
    counted_char operator++(int) noexcept {
        auto const before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(counted_char const& a, counted_char const& b) noexcept { return a.at == b.at; }
};

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE std::string reason_of(nlohmann::json::exception const& e) {
    std::string_view said = e.what();
    for (std::string_view const prefix : {"] ", "syntax error ", " - "})
        if (auto const at = said.find(prefix); at != said.npos) said.remove_prefix(at + prefix.size());
    return printable(said, 120);
}

PARSEARCH_IO_INLINE nlohmann::json strict_builder::build() {
    // The parser would take it for the end of the text.
    if (auto const nul = text_.find('\0'); nul != text_.npos) {
        taken_ = nul + 1;
        refuse("is no JSON: a character with the number 0");
    }
    (void)nlohmann::json::sax_parse(counted_char{text_.data(), &taken_}, counted_char{text_.data() + text_.size(), &taken_}, this);
    return std::move(root_);
}

PARSEARCH_IO_INLINE bool strict_builder::key(std::string& name) {
    auto const [at, fresh] = open_.back()->get_ref<nlohmann::json::object_t&>().try_emplace(name);
    if (!fresh) refuse("member ", in_quotes(name), " is given twice: at most once");
    member_ = &at->second;
    return true;
}

PARSEARCH_IO_INLINE bool strict_builder::put(nlohmann::json v) {
    if (++values_ > limits_.values) refuse("more than ", limits_.values, " values");
    if (open_.empty()) {
        root_ = std::move(v);
        last_ = &root_;
    } else if (open_.back()->is_array()) {
        auto& elements = open_.back()->get_ref<nlohmann::json::array_t&>();
        elements.push_back(std::move(v));
        last_ = &elements.back();
    } else {
        *member_ = std::move(v);
        last_ = member_;
    }
    return true;
}

PARSEARCH_IO_INLINE bool strict_builder::open(nlohmann::json v) {
    if (open_.size() == limits_.depth) refuse("arrays and objects are more than ", limits_.depth, " deep");
    put(std::move(v));
    open_.push_back(last_);
    return true;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE double json_value::number(double least) const {
    if (value_->is_number())
        if (auto const n = value_->get<double>(); n >= least) return n;
    if (least > std::numeric_limits<double>::lowest()) refuse("must be a number of at least ", least);
    refuse("must be a number");
}

PARSEARCH_IO_INLINE std::size_t json_value::one_of(member_names const& names) const {
    if (value_->is_string())
        for (std::size_t i = 0; i < names.size(); ++i)
            if (names[i] == value_->get_ref<std::string const&>()) return i;
    refuse("must be one of ", detail::joined(names));
}

PARSEARCH_IO_INLINE std::string json_value::path_of(std::string_view member) const {
    for (char const c : member)
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
            return text(path_, '[', in_quotes(member), ']');
    if (member.empty() || member.size() > 60) return text(path_, '[', in_quotes(member), ']');
    return path_.empty() ? std::string(member) : text(path_, '.', member);
}

PARSEARCH_IO_INLINE json_object::json_object(json_value value, member_names const& known) : value_(std::move(value)) {
    value_.for_members([&](std::string const& name, json_value const& member) {
        for (auto const k : known)
            if (k == name) return;
        throw invalid_input(member.place(), ": unknown member: known are ", detail::joined(known));
    });
}

PARSEARCH_IO_INLINE json_object json_value::document(std::string_view format, std::uint64_t newest, member_names known) const {
    if (!value_->is_object()) refuse("must be an object");
    // The header first: what another format or version holds is no matter.
    auto const header = [&](char const* member) -> json_value {
        auto const at = value_->find(member);
        if (at == value_->end()) throw invalid_input(place(), ": ", member, " is missing: a document says its format and version");
        return {*document_, *at, path_of(member)};
    };
    if (auto const given = header("format"); given.string() != format) given.refuse("must be \"", format, '"');
    auto const version = header("version");
    auto const* const number = version.value_->get_ptr<std::uint64_t const*>();
    if (!number || *number < 1 || *number > newest) version.refuse("must be ", newest > 1 ? "from 1 to " : "", newest, ", which this release reads");
    known.insert(known.begin(), {"format", "version"});
    return object(std::move(known));
}

} // namespace parsearch::io

#pragma once
// Options on a command line, and the help about them.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <parsearch/io/described/described.hpp>

namespace tools {

namespace ps = parsearch;

inline constexpr std::size_t help_column = 36, help_width = 110;

// `text` in lines that end before `help_width`, from `column`.
inline std::string wrapped(std::string_view text, std::size_t column) {
    std::string out;
    std::size_t at = column;
    while (!text.empty()) {
        auto const word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        if (at > column && at + word.size() + 1 > help_width) {
            out += '\n' + std::string(column, ' ');
            at = column;
        }
        if (at > column) out += ' ';
        out += word;
        at += word.size() + (at > column);
    }
    return out;
}

// Options in two columns: name and kind of value; meaning and default, wrapped.
class help_formatter : public CLI::Formatter {
  public:
    // `usage` is what follows "Usage: ".
    explicit help_formatter(std::string usage) : usage_(std::move(usage)) {}
    std::string make_option(CLI::Option const* option, bool) const override {
        auto name = "  " + option->get_name(false, true);
        if (auto const comma = name.find(','); comma != std::string::npos) name.insert(comma + 1, " ");
        else name.insert(2, "    ");
        if (!option->get_type_name().empty()) name += ' ' + option->get_type_name();
        auto help = option->get_description();
        if (!option->get_default_str().empty()) help += " [" + option->get_default_str() + ']';
        auto const gap = name.size() + 2 > help_column ? '\n' + std::string(help_column, ' ') : std::string(help_column - name.size(), ' ');
        return name + gap + wrapped(help, help_column) + '\n';
    }
    std::string make_group(std::string group, bool positional, std::vector<CLI::Option const*> options) const override {
        return CLI::Formatter::make_group(std::move(group), positional, std::move(options)).substr(1); // without its blank line: there is another
    }
    std::string make_usage(CLI::App const*, std::string) const override { return "Usage: " + usage_ + "\n\n"; }

  private:
    std::string usage_;
};

// Adds an option whose value `set` reads from text, which is never empty.
inline CLI::Option* add_text(CLI::App& app, std::string const& names, std::string const& group, std::string_view placeholder, std::string const& help,
                             std::function<void(std::string const&)> set, std::string const& shown_default = {}) {
    auto const checked = [name = names.substr(names.rfind(',') + 1), kind = std::string(placeholder),
                          set = std::move(set)](std::string const& given) {
        if (given.empty()) throw ps::invalid_input(name, " is empty: must be ", kind);
        set(given);
    };
    return app.add_option_function<std::string>(names, checked, help)->type_name(std::string(placeholder))->group(group)->default_str(shown_default);
}

template <class T> struct inner {
    using type = T;
};
template <class T> struct inner<std::optional<T>> {
    using type = T;
};
// What stands for a value of type T, or of what an optional holds.
template <class T> std::string placeholder_of() {
    using value = ps::io::option_value<typename inner<T>::type>;
    if constexpr (requires { value::list("|"); }) return value::list("|");
    else return std::string(value::placeholder);
}

// An option --PREFIX.NAME for each described option but those of which `left_out(name)` is true; `used` gets the names that are given.
template <class Options>
void add_described(CLI::App& app, Options& options, std::string const& prefix, std::string const& group, std::set<std::string>* used = nullptr,
                   bool (*left_out)(std::string_view) = nullptr) {
    ps::io::for_each_field(options, [&](auto const& f, auto& member) {
        if (left_out && left_out(f.name)) return;
        using type = std::remove_reference_t<decltype(member)>;
        auto const name = std::string(f.name);
        add_text(
            app, "--" + prefix + '.' + name, group, placeholder_of<type>(), std::string(f.help),
            [&member, name, prefix, used](std::string const& given) {
                ps::io::read_option(given, name, "--" + prefix, member);
                if (used) used->insert(name);
            },
            ps::io::option_value<type>::print(member));
    });
}

inline std::vector<std::string> split_at_commas(std::string const& list) {
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin <= list.size();) {
        auto const end = std::min(list.find(',', begin), list.size());
        out.push_back(list.substr(begin, end - begin));
        begin = end + 1;
    }
    return out;
}

} // namespace tools

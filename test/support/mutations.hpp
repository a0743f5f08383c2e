#pragma once
/// Wrong documents: right ones with some bytes or some values changed, the same for a seed on every platform.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>

namespace support {

/// `text` with one to three changes: a byte replaced, inserted or removed, a range removed or doubled, the end cut off.
inline std::string mutated_bytes(std::mt19937_64& rng, std::string text) {
    using parsearch::uniform_index;
    auto const at = [&] { return static_cast<std::size_t>(uniform_index(rng, text.size() + 1)); };
    // Bytes that mean something to JSON and to numbers, and now and then any.
    auto const byte = [&] {
        constexpr std::string_view known = "{}[]\",:0123456789.eE-+ntfu \n\t\\";
        return uniform_index(rng, 4) ? known[uniform_index(rng, known.size())] : static_cast<char>(uniform_index(rng, 256));
    };
    for (auto changes = 1 + uniform_index(rng, 3); changes > 0; --changes) {
        auto const i = at(), n = static_cast<std::size_t>(uniform_index(rng, 12));
        switch (uniform_index(rng, 6)) {
        case 0:
        case 1:
            if (i < text.size()) text[i] = byte();
            break;
        case 2: text.insert(i, 1, byte()); break;
        case 3: text.erase(i, 1 + n / 8); break;
        case 4: text.insert(i, text.substr(i, n)); break;
        default:
            if (uniform_index(rng, 4) == 0) text.resize(i);
            else text.erase(i, n);
        }
    }
    return text;
}

/// `document` with one or two values replaced, removed, doubled, renamed or added, anywhere in it.
inline nlohmann::json mutated_values(std::mt19937_64& rng, nlohmann::json document) {
    using nlohmann::json, parsearch::uniform_index;
    static std::vector<json> const odd{nullptr,
                                       true,
                                       false,
                                       "",
                                       "x",
                                       0,
                                       1,
                                       -1,
                                       2,
                                       3,
                                       7,
                                       0.5,
                                       -0.0,
                                       1e300,
                                       8192,
                                       2147483648u,
                                       -2147483649,
                                       4294967296u,
                                       std::int64_t{9223372036854775807},
                                       std::uint64_t{18446744073709551615u},
                                       json::array(),
                                       json::object(),
                                       json::array({0}),
                                       json::array({"s", 4}),
                                       json{{"device", 0}}};
    for (auto changes = 1 + uniform_index(rng, 2); changes > 0; --changes) {
        std::vector<json*> all{&document};
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i]->is_structured())
                for (auto& inner : *all[i]) all.push_back(&inner);
        auto& v = *all[uniform_index(rng, all.size())];
        auto const any = [&] { return odd[uniform_index(rng, odd.size())]; };
        auto const other = [&] { return *all[uniform_index(rng, all.size())]; };
        if (v.is_array() && !v.empty() && uniform_index(rng, 2)) {
            auto const i = static_cast<std::ptrdiff_t>(uniform_index(rng, v.size()));
            if (uniform_index(rng, 2)) v.erase(v.begin() + i);
            else v.push_back(json(v[static_cast<std::size_t>(i)]));
        } else if (v.is_object() && !v.empty() && uniform_index(rng, 2)) {
            auto member = v.begin();
            std::advance(member, static_cast<std::ptrdiff_t>(uniform_index(rng, v.size())));
            auto const key = member.key();
            json const value = *member;
            if (uniform_index(rng, 3)) v.erase(key);
            if (uniform_index(rng, 2)) v[key + (uniform_index(rng, 2) ? "x" : "_s")] = value;
        } else if (v.is_number_integer() && v < std::int64_t{1} << 60 && v > -(std::int64_t{1} << 60) && uniform_index(rng, 2)) {
            v = v.get<std::int64_t>() + (uniform_index(rng, 2) ? 1 : -1);
        } else {
            json const replacement = uniform_index(rng, 3) ? any() : other();
            v = replacement;
        }
    }
    return document;
}

/// Reads documents of one kind that are mutations of `good`, `rounds` by values and `rounds` by bytes: `read(text)` checks what it reads or throws
/// `invalid_input`. Answers how many were read and how many refused.
struct mutation_counts {
    std::size_t read = 0, refused = 0;
};
template <class Read> mutation_counts read_mutations(std::uint64_t seed, int rounds, std::string const& good, Read const& read) {
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    mutation_counts counts;
    auto const check = [&](std::string const& text) {
        INFO(text);
        try {
            read(text);
            ++counts.read;
        } catch (parsearch::invalid_input const&) {
            ++counts.refused;
        }
    };
    auto const document = nlohmann::json::parse(good);
    for (int i = 0; i < rounds; ++i) {
        check(mutated_values(rng, document).dump());
        check(mutated_bytes(rng, good));
    }
    return counts;
}

} // namespace support

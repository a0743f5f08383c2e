#pragma once
// Random regular networks of servers.

#include <unordered_set>

#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/fabric/network/random_regular.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE network random_regular(std::uint32_t servers, std::uint32_t degree, std::uint64_t seed, link_description const& link) {
    if (servers < 1 || servers > max_vertices) throw invalid_input("random network of ", servers, " servers: must be from 1 to ", max_vertices);
    if (degree >= servers || (degree == 0 && servers > 1) || (degree == 1 && servers > 2))
        throw invalid_input("random network of ", servers, " servers of degree ", degree,
                            ": the degree must be below the number of servers, and at least 2 (1 for two servers, 0 for one) to connect them");
    constexpr std::uint64_t most_links = std::uint64_t{1} << 24;
    if (std::uint64_t{servers} * degree / 2 > most_links)
        throw invalid_input("random network of ", servers, " servers of degree ", degree, ": must have at most ", most_links, " links");
    using ends = std::pair<std::uint32_t, std::uint32_t>;
    auto const key = [](std::uint32_t a, std::uint32_t b) { return a < b ? (std::uint64_t{a} << 32) | b : (std::uint64_t{b} << 32) | a; };
    std::vector<ends> pairs;
    for (std::uint32_t step = 1; step <= degree / 2; ++step)
        for (std::uint32_t s = 0; s < servers; ++s) pairs.push_back({s, (s + step) % servers});
    if (degree % 2 == 1) // half way round; of an odd number of servers the last stays without
        for (std::uint32_t s = 0; s < servers / 2; ++s) pairs.push_back({s, s + servers / 2});
    std::unordered_set<std::uint64_t> joined;
    for (auto const& [a, b] : pairs) joined.insert(key(a, b));

    split_mix rng(seed);
    auto const exchange = [&] {
        auto& x = pairs[static_cast<std::size_t>(uniform_index(rng, pairs.size()))];
        auto& y = pairs[static_cast<std::size_t>(uniform_index(rng, pairs.size()))];
        auto const second = bernoulli(rng, 0.5) ? y : ends{y.second, y.first};
        ends const to_first{x.first, second.first}, to_second{x.second, second.second};
        if (to_first.first == to_first.second || to_second.first == to_second.second || joined.contains(key(to_first.first, to_first.second)) ||
            joined.contains(key(to_second.first, to_second.second)))
            return;
        joined.erase(key(x.first, x.second));
        joined.erase(key(y.first, y.second));
        joined.insert(key(to_first.first, to_first.second));
        joined.insert(key(to_second.first, to_second.second));
        x = to_first;
        y = to_second;
    };
    std::vector<std::uint32_t> number(servers); // random numbers for the servers, so that any may be the one of fewer links
    for (std::uint32_t s = 0; s < servers; ++s) {
        auto const other = static_cast<std::size_t>(uniform_index(rng, s + std::uint64_t{1}));
        number[s] = number[other];
        number[other] = s;
    }
    network out{text("random, degree ", degree), servers, 0, {}, {}};
    do {
        for (std::size_t i = 0; i < 20 * pairs.size(); ++i) exchange();
        out.links.clear();
        for (auto const& [a, b] : pairs) out.links.push_back({number[a], number[b], link});
    } while (!connected(out));
    validate(out);
    return out;
}

PARSEARCH_INLINE network random_links(std::uint32_t servers, std::uint32_t degree, std::uint64_t seed, link_description const& link) {
    if (servers < 2 || degree < servers) return random_regular(servers, degree, seed, link);
    auto out = random_regular(servers, servers - 1, seed, link);
    auto const once = out.links;
    auto left = degree - (servers - 1);
    for (; left >= servers - 1; left -= servers - 1) out.links.insert(out.links.end(), once.begin(), once.end());
    if (left > 1) {
        auto const more = random_regular(servers, left, seed, link).links;
        out.links.insert(out.links.end(), more.begin(), more.end());
    } else if (left == 1) {
        for (std::uint32_t s = 0; s < servers / 2; ++s) out.links.push_back({s, s + servers / 2, link});
    }
    out.name = text("random, degree ", degree);
    return out;
}

} // namespace parsearch::fabric

#pragma once
// NCF: neural collaborative filtering, the fusion of matrix factorization and a perceptron (He et al., WWW 2017: NeuMF).

#include <parsearch/models/ncf.hpp>
#include <parsearch/models/parts/recommendation.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph ncf(ncf_options const& o) {
    detail::check_size("ncf", "users", o.users);
    detail::check_size("ncf", "items", o.items);
    detail::check_count("ncf", "tables", o.tables);
    detail::check_size("ncf", "factors", o.factors);
    detail::check_size("ncf", "embedding", o.embedding);
    detail::check_sizes("ncf", "hidden", o.hidden);
    detail::check_size("ncf", "batch", o.batch);
    detail::check_floating("ncf", o.type);
    graph::operator_graph g;
    std::vector<graph::tensor_ref> factors[2], embeddings;
    auto const side = [&](std::size_t which, std::string_view name, std::int64_t rows) {
        for (std::int64_t t = 1; t <= o.tables; ++t) {
            auto const prefix = o.tables == 1 ? std::string(name) : text(name, t);
            auto const index = g.input(prefix + ".index", {{o.batch}, ops::dtype::i64});
            auto const table = [&](std::string_view of, std::int64_t features) {
                return g.add(text(prefix, '.', of), ops::embedding{.entries = rows, .features = features, .type = o.type}, index);
            };
            factors[which].push_back(table("factors", o.factors));
            embeddings.push_back(table("embedding", o.embedding));
        }
        return o.tables == 1 ? factors[which].front() : detail::join(g, text(name, ".factors"), factors[which]);
    };
    auto const user = side(0, "user", o.users), item = side(1, "item", o.items);
    auto const product = g.add("factorization", ops::nary{ops::combine::multiply}, user, item);
    detail::chain net{g, detail::join(g, "embeddings", embeddings)};
    detail::perceptron(net, "mlp", o.hidden);
    net.end = g.add("fusion", ops::concat{}, product, net.end);
    detail::add_click_loss(net);
    return g;
}

} // namespace parsearch::models

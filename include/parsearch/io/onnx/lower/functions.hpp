#pragma once
/// Bodies of functions, those that a model defines and those by which ONNX defines operators.

#include <algorithm>
#include <optional>
#include <vector>

#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/lower/infer.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx::detail {

/// Puts the caller's attributes where a body refers to them.
inline void substitute(pb::NodeProto& m, pb::NodeProto const& caller) {
    auto& all = *m.mutable_attribute();
    for (int i = 0; i < all.size();) {
        auto& a = all[i];
        if (a.has_g())
            for (auto& inner : *a.mutable_g()->mutable_node()) substitute(inner, caller);
        if (a.ref_attr_name().empty()) {
            ++i;
            continue;
        }
        auto const from =
            std::find_if(caller.attribute().begin(), caller.attribute().end(), [&](auto const& x) { return x.name() == a.ref_attr_name(); });
        if (from == caller.attribute().end()) {
            all.DeleteSubrange(i, 1);
            continue;
        }
        auto const name = a.name();
        a = *from;
        a.set_name(name);
        ++i;
    }
}

/// The body by which ONNX defines the operator of `n`, which `p` says in the file, for inputs of `types`; nothing where it defines none.
[[nodiscard]] inline std::optional<pb::FunctionProto> definition_of(node const& n, pb::NodeProto const& p, std::vector<pb::TypeProto> const& types) {
    auto const* const schema = schema_of(n);
    if (schema == nullptr || n.version > newest_opset(n.domain)) return std::nullopt;
    if (schema->HasFunction()) return *schema->GetFunction();
    pb::FunctionProto body;
    if (!schema->HasContextDependentFunction() || !schema->BuildContextDependentFunction(pb::FunctionBodyBuildContextImpl(p, types), body))
        return std::nullopt;
    return body;
}

} // namespace parsearch::io::onnx::detail

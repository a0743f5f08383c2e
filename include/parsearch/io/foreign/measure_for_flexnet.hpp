#pragma once
/// What FlexNet, the simulator of TopoOpt, would have measured of a problem: the times of its operators at every split, as its files say them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/io/foreign/flexnet_measures.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/problem/problem.hpp>

namespace parsearch::io {

/// Measures, and what of the problem they do not say, a sentence each.
struct flexnet_measuring {
    flexnet_measures measures{};
    std::vector<std::string> losses{};
};

/// What FlexNet calls an operator, or why it has no name there: one of the two is empty.
struct flexnet_name {
    std::string name{};   ///< "Conv2D_3_3_64"
    std::string reason{}; ///< "FlexNet's files name no such operator"
};

/// `Dense_in_out`, `Conv2D_kh_kw_out`, `Pool2D_kh_kw` (global pooling too), `Embed_NxD`, `Concat_axis`, `ElementBinary_op`, `ElementUnary_op`,
/// `Softmax`, `Flat` and `MultiHeadAttention_` with embedding and heads. Numbers of elementwise functions are FlexFlow's: `add` is 31. Sources:
/// FlexNet's files, and flexflow/FlexFlow, include/flexflow/ffconst.h (OperatorType).
[[nodiscard]] flexnet_name flexnet_name_of(ops::operation const& op);

/// Bytes that FlexNet says a shard needs: inputs, weights and outputs with their gradients, of a convolution without. As in its files.
[[nodiscard]] byte_count flexnet_memory_of(ops::operation const& op, std::span<std::int32_t const> degrees);

namespace detail {

/// Collects the measures of a problem.
class flexnet_measurer {
  public:
    explicit flexnet_measurer(parallelization const& p);

    flexnet_measuring run() &&;

  private:
    using numbers = std::vector<std::size_t>;                               ///< of operators, ascending
    using operator_key = std::pair<std::string, std::vector<std::int64_t>>; ///< name and degrees
    /// An entry of the file, and the operator that it is of.
    struct entry {
        std::size_t position = 0, op = 0;
    };
    /// Operators that take other times than the entries of their name, and the operator that the first of these is of.
    struct clash {
        std::size_t said = 0;
        numbers others{};
    };

    void measure(std::size_t op, std::string const& name);
    /// False where the format cannot say it.
    [[nodiscard]] bool add(std::size_t op, std::string const& name, space::configuration const& c);
    [[nodiscard]] double milliseconds_of(std::size_t op, space::configuration const& c, ops::pass pass) const;
    /// Whether `m`, of operator `op`, would be read as a dense layer that it is not.
    [[nodiscard]] bool misleads(std::size_t op, flexnet_measurement const& m) const;
    static void tell(numbers& of, std::size_t op) {
        if (of.empty() || of.back() != op) of.push_back(op);
    }
    /// "operator 'fc1'", "3 operators, the first 'fc1',".
    [[nodiscard]] std::string shown(numbers const& of) const;
    void add_losses();

    parallelization const& p_;
    flexnet_measuring out_;
    std::map<operator_key, entry> known_;
    std::map<std::string, std::vector<ops::operation>> measured_;                  ///< by name, without the names of parameters
    std::vector<std::pair<std::pair<std::string, std::string>, numbers>> unnamed_; ///< by kind and reason, in order of appearance
    std::map<std::string, clash> clashes_;                                         ///< by name
    std::map<ops::dtype, numbers> types_;                                          ///< but f32
    numbers fewer_gradients_, split_otherwise_, misleading_;
    std::size_t splits_left_ = 0;
};
} // namespace detail

/// The times of forward and backward of every operator of `p` that has a name in FlexNet's files, at every split of the operator's space (without
/// `space_options::allows`) that they can say: each axis of the output in equal parts, and nothing else. Times are those of the oracle on the
/// problem's devices, in whole picoseconds up to 2^50; backward computes the gradients of all inputs, as FlexNet measures it; views take none.
/// `batch_size` is that of the first graph input, `ngpus` the devices. `to_profile` of the answer has all these times again: of dense layers of two
/// axes in f32 with bias under the kernel of `linear`, of others as `flexnet:NAME`.
/// What is left out, or said under a name that another operator has, is told in `losses`. The file's first entry of a name and degrees is that of the
/// first such operator, as in FlexNet's.
/// Throws `invalid_input` where devices are of several kinds, `training` is false, replicas are planned, or no operator has a name, and what the
/// oracle throws. Complexity: two answers of the oracle for each split of each operator.
[[nodiscard]] flexnet_measuring measure_for_flexnet(parallelization const& p);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/foreign/measure_for_flexnet.ipp>
#endif

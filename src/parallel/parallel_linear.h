// A linear layer whose weight is sharded over the tensor ranks, by columns or by rows, with the
// collectives that this needs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "autograd/context.h"
#include "comm/mesh.h"
#include "ops/linear/linear.h"
#include "parallel/low_rank.h"

namespace bloomery {

class ParallelLinear {
 public:
  // Output features are cut: x has the tokens held here (sequence.h), y this rank's features of all
  // tokens. The gradient of x is a sum over ranks, which runs beside the weight gradient where the
  // context has a stream for communication. Where tokens are divided they are gathered in front of
  // the product, and again for the weight gradient instead of being kept.
  // The whole weight is [out_shape.., in], of which dimension `split_dim` is cut; so is the bias
  // [out_shape..]. Parameters "<name>.weight" and, if wanted, "<name>.bias", which starts at zero.
  // With `adapter` a low-rank product stands beside it.
  static ParallelLinear column(const Mesh& mesh, const std::string& name, const Shape& out_shape,
                               int split_dim, std::int64_t in, bool bias, const Init& weight_init,
                               const std::optional<LowRankOptions>& adapter = {});

  // Input features are cut: x has this rank's features of all tokens, y is a sum over ranks for the
  // tokens held here.
  // The whole weight is [out, in], of which `in` is cut. Every rank holds the whole bias [out]; the
  // first adds it to its part of the sum, all compute the same gradient.
  static ParallelLinear row(const Mesh& mesh, const std::string& name, std::int64_t out,
                            std::int64_t in, bool bias, const Init& weight_init,
                            const std::optional<LowRankOptions>& adapter = {});

  // x [tokens, features in] to [tokens, features out]. The activation can follow a
  // column-parallel product only; it may be left to the next layer (LinearOptions).
  Value operator()(Context& context, const LinearInput& x, Activation activation = Activation::none,
                   bool apply_activation = true) const;
  void collect(ParameterList& parameters) const;

 private:
  enum class Cut : std::uint8_t { outputs, inputs };
  ParallelLinear(Cut cut, Parameter weight, std::unique_ptr<Parameter> bias,
                 std::unique_ptr<LowRank> adapter);

  Value column_parallel(Context& context, const LinearInput& x, LinearOptions options) const;
  Value adapted(Context& context, const LinearInput& x, LinearOptions options) const;
  Value row_parallel(Context& context, const LinearInput& x) const;

  Cut cut_;
  std::unique_ptr<Parameter> weight_, bias_;
  std::unique_ptr<LowRank> adapter_;  // or null
};

}  // namespace bloomery

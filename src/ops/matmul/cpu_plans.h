// How a product runs on the CPU: by which library or kernels, and into which blocks it is cut. A
// block of a library is one single-threaded call, so that bits depend on the shape and the plan
// alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ops/matmul/choices.h"
#include "ops/matmul/onednn.h"

namespace bloomery {

enum class CpuMethod : std::uint8_t {
  onednn,       // fp32
  onednn_bf16,  // bf16 inputs as they are
  amx,          // bf16, by our own kernels on the tiles
  packed,       // all, by our packed kernels; 16-bit inputs are converted to fp32
};

struct CpuMatmulPlan {
  CpuMethod method = CpuMethod::packed;
  std::int64_t block_rows = 0, block_columns = 0;
};

// Plans by shape. A service of a CPU device.
class CpuMatmulPlans {
 public:
  explicit CpuMatmulPlans(Device& device);

  // The plan for a product. `trial` runs the product once without lasting effect; it is called
  // only when timing is on and nothing is stored for this product.
  const CpuMatmulPlan& plan(const MatmulKey& key,
                            const std::function<void(const CpuMatmulPlan&)>& trial);

  // What the fixed rule says, without looking at what is stored and without keeping it.
  CpuMatmulPlan by_rule(const MatmulKey& key) const { return candidates(key).front(); }

  OneDnn* onednn() const { return onednn_.get(); }  // null: not installed

  // Candidates for a product, the one that the fixed rule takes first.
  std::vector<CpuMatmulPlan> candidates(const MatmulKey& key) const;

 private:
  bool available(CpuMethod method, const MatmulKey& key) const;
  bool usable(const CpuMatmulPlan& plan, const MatmulKey& key) const;
  std::optional<CpuMatmulPlan> stored(const MatmulKey& key);

  MatmulChoices& choices_;
  const std::int64_t num_threads_;
  std::unique_ptr<OneDnn> onednn_;
  std::map<MatmulKey, CpuMatmulPlan> plans_;
};

}  // namespace bloomery

#include "ops/matmul/cpu_plans.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <sstream>

#include "ops/matmul/amx.h"
#include "ops/matmul/cpu_blocks.h"

namespace bloomery {
namespace {

constexpr std::array<const char*, 4> kMethodNames{"onednn", "onednn_bf16", "amx", "packed"};

std::string text(const CpuMatmulPlan& plan) {
  return concat(kMethodNames[static_cast<std::size_t>(plan.method)], ' ', plan.block_rows, ' ',
                plan.block_columns);
}

std::optional<CpuMatmulPlan> parse(const std::string& line) {
  std::istringstream words(line);
  std::string method;
  CpuMatmulPlan plan;
  words >> method >> plan.block_rows >> plan.block_columns;
  const auto found = std::find(kMethodNames.begin(), kMethodNames.end(), method);
  if (!words || found == kMethodNames.end() || plan.block_rows < 1 || plan.block_columns < 1) {
    return std::nullopt;
  }
  plan.method = static_cast<CpuMethod>(found - kMethodNames.begin());
  return plan;
}

// The best of three runs each, in turns, since a shared machine changes its speed by the moment.
// The first run also compiles. Whoever falls far behind is not asked again, and after a while
// nobody is: candidates come in the order of what is expected of them. The first one stands for the
// fixed rule; on the tiles, whose speed changes most, others must be far better.
CpuMatmulPlan fastest(const std::vector<CpuMatmulPlan>& candidates,
                      const std::function<void(const CpuMatmulPlan&)>& trial) {
  constexpr int kRounds = 3;
  constexpr double kPatience = 1, kCompilation = 0.02;  // seconds
  constexpr double kFarBehind = 1.3, kFarBetter = 0.7;
  std::vector<double> best(candidates.size(), std::numeric_limits<double>::infinity());
  double spent = 0, least = best.front();
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < candidates.size() && spent < kPatience; ++i) {
      if (round > 0 && best[i] > kFarBehind * least + kCompilation) {
        continue;
      }
      const auto start = std::chrono::steady_clock::now();
      trial(candidates[i]);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      spent += elapsed.count();
      best[i] = std::min(best[i], elapsed.count());
      least = std::min(least, best[i]);
    }
  }
  if (candidates.front().method == CpuMethod::amx) {
    best.front() *= kFarBetter;
  }
  return candidates[static_cast<std::size_t>(std::min_element(best.begin(), best.end()) -
                                             best.begin())];
}

}  // namespace

CpuMatmulPlans::CpuMatmulPlans(Device& device)
    : choices_(device.service<MatmulChoices>()),
      num_threads_(device.pool().num_threads()),
      onednn_(OneDnn::load()) {}

std::vector<CpuMatmulPlan> CpuMatmulPlans::candidates(const MatmulKey& key) const {
  // On GPT shapes our own AVX2 and AVX-512 kernels run at 0.95 to 1.3 times oneDNN's rate. Packing
  // must pay, though: few rows are left to the library, unless the product is small, or its rows
  // and columns are few (sums over long ones, where ours are the most exact).
  constexpr std::int64_t kFew = 32, kSmall = 64 * 64 * 64;
  const bool few = key.m < kFew && key.n < kFew;
  const bool library_first = !few && (cpu_level() == 0 || key.m < kFew);
  std::vector<CpuMethod> methods{CpuMethod::amx, CpuMethod::onednn_bf16,
                                 library_first ? CpuMethod::onednn : CpuMethod::packed,
                                 library_first ? CpuMethod::packed : CpuMethod::onednn};
  std::erase_if(methods, [&](CpuMethod method) {
    const bool by_onednn = method == CpuMethod::onednn || method == CpuMethod::onednn_bf16;
    return !available(method, key) || (by_onednn && key.m * key.n * key.k <= kSmall);
  });
  std::vector<CpuMatmulPlan> plans;
  for (const CpuMethod method : methods) {
    const auto [rows, columns] = method == CpuMethod::packed ? own_blocks(key)
                                 : method == CpuMethod::amx  ? amx_blocks(key, num_threads_)
                                                             : onednn_blocks(key);
    plans.push_back({method, rows, columns});
  }
  // Timing also tries other cuts with the method that the rule prefers, but not on the tiles: there
  // a neighbour changes the speed of a core by more than any cut does.
  if (methods.front() == CpuMethod::amx) {
    return plans;
  }
  const auto piece = [](std::int64_t extent, std::int64_t parts) {
    return std::max<std::int64_t>(64, (extent / parts + 63) / 64 * 64);
  };
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{128, 384},
                                      {256, 256},
                                      {512, 512},
                                      {256, 1024},
                                      {512, 768},
                                      {1024, 256},
                                      {1024, 384},
                                      {256, key.n},
                                      {1024, 1024},
                                      {piece(key.m, 4), key.n},
                                      {piece(key.m, 2), key.n},
                                      {key.m, piece(key.n, 4)},
                                      {key.m, piece(key.n, 2)},
                                      {piece(key.m, 2), piece(key.n, 2)}}) {
    plans.push_back({methods.front(), std::min(rows, key.m), std::min(columns, key.n)});
  }
  return plans;
}

bool CpuMatmulPlans::available(CpuMethod method, const MatmulKey& key) const {
  switch (method) {
    case CpuMethod::packed:
      return true;
    case CpuMethod::onednn:
      return onednn_ != nullptr && key.input == DType::fp32;
    case CpuMethod::onednn_bf16:
      // Never beside our own kernel on the tiles: for some small shapes oneDNN 2 uses tiles that it
      // has not configured, which ends the process.
      return onednn_ != nullptr && key.input == DType::bf16 && cpu_level() >= 3 && !amx_usable();
    case CpuMethod::amx:
      return key.input == DType::bf16 && amx_usable();
  }
  return false;
}

bool CpuMatmulPlans::usable(const CpuMatmulPlan& plan, const MatmulKey& key) const {
  const auto whole_strips = [](std::int64_t block, std::int64_t extent) {
    return block % AmxProduct::kStrip == 0 || block >= extent;
  };
  return available(plan.method, key) &&
         (plan.method != CpuMethod::amx ||
          (whole_strips(plan.block_rows, key.m) && whole_strips(plan.block_columns, key.n)));
}

std::optional<CpuMatmulPlan> CpuMatmulPlans::stored(const MatmulKey& key) {
  const std::string line = choices_.find(key);
  if (line.empty()) {
    return std::nullopt;
  }
  const std::optional<CpuMatmulPlan> plan = parse(line);
  if (!plan || !usable(*plan, key)) {
    choices_.reject(key);
    return std::nullopt;
  }
  return plan;
}

const CpuMatmulPlan& CpuMatmulPlans::plan(const MatmulKey& key,
                                          const std::function<void(const CpuMatmulPlan&)>& trial) {
  const auto known = plans_.find(key);
  if (known != plans_.end()) {
    return known->second;
  }
  std::optional<CpuMatmulPlan> plan = stored(key);
  if (!plan) {
    const std::vector<CpuMatmulPlan> all = candidates(key);
    plan = all.front();
    if (choices_.timing) {
      plan = fastest(all, trial);
    }
  }
  choices_.store(key, text(*plan));
  return plans_.emplace(key, *plan).first->second;
}

}  // namespace bloomery

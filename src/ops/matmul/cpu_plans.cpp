#include "ops/matmul/cpu_plans.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <sstream>

#include "ops/matmul/amx.h"

namespace bloomery {
namespace {

constexpr std::array<const char*, 5> kMethodNames{"openblas", "onednn", "onednn_bf16", "amx",
                                                  "own"};

// Whether the processor multiplies bf16 (AVX-512 bf16; every processor with AMX has it too).
bool multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") > 0;
#else
  return false;
#endif
}

// Products run this many times as fast as in fp32, by order of magnitude.
double speed_of(CpuMethod method) {
  switch (method) {
    case CpuMethod::onednn_bf16:
      return amx_usable() ? 10 : 2;
    default:
      return 1;
  }
}

// Relative time of a product cut into blocks, averaged over pools of 2 to 16 threads. Blocks cost
// what their library call copies (proportional to rows + columns where the product is to
// rows * columns) and a fixed start; threads idle in the last round.
double block_cost(const MatmulKey& key, double speed, std::int64_t rows, std::int64_t columns) {
  constexpr double kCopyCost = 4, kStartOperations = 1e6;
  const double copy = kCopyCost * speed;
  const double start =
      kStartOperations * speed / (2.0 * static_cast<double>(rows * columns * key.k));
  const double overhead =
      1 + copy / static_cast<double>(rows) + copy / static_cast<double>(columns) + start;
  const std::int64_t count = ((key.m + rows - 1) / rows) * ((key.n + columns - 1) / columns);
  const double wasted = static_cast<double>(count * rows * columns) /
                        static_cast<double>(key.m * key.n);  // by smaller blocks at the edges
  double rounds = 0;
  for (const std::int64_t threads : {2, 3, 4, 6, 8, 12, 16}) {
    const std::int64_t slots = (count + threads - 1) / threads * threads;
    rounds += static_cast<double>(slots) / static_cast<double>(count);
  }
  return overhead * wasted * rounds;
}

std::pair<std::int64_t, std::int64_t> best_blocks(const MatmulKey& key, double speed) {
  constexpr std::array<std::int64_t, 10> kExtents{64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048};
  std::pair<std::int64_t, std::int64_t> best{key.m, key.n};
  double least = block_cost(key, speed, key.m, key.n);
  for (const std::int64_t rows : kExtents) {
    for (const std::int64_t columns : kExtents) {
      const std::int64_t used_rows = std::min(rows, key.m), used_columns = std::min(columns, key.n);
      const double cost = block_cost(key, speed, used_rows, used_columns);
      if (cost < least) {
        least = cost;
        best = {used_rows, used_columns};
      }
    }
  }
  return best;
}

// Our own kernels share what they pack, so that blocks may be small in rows: seven strips of the
// kernel, in a number that most pools divide among themselves evenly. The columns of a block stay
// in the second level of cache. Where there are few rows, columns are divided instead.
std::pair<std::int64_t, std::int64_t> own_blocks(const MatmulKey& key) {
  constexpr std::int64_t kRows = 98, kColumns = 768, kStrip = 32, kEven = 4, kEnough = 8;
  const auto parts = [](std::int64_t extent, std::int64_t part) {
    return (extent + part - 1) / part;
  };
  std::int64_t row_blocks = parts(key.m, kRows), column_blocks = parts(key.n, kColumns);
  if (key.m <= 2 * kRows) {
    column_blocks = std::max(kEnough, column_blocks);
  } else {
    row_blocks = parts(row_blocks, kEven) * kEven;
    if (row_blocks * column_blocks < kEnough) {
      (key.m >= row_blocks * kRows * 7 / 8 ? row_blocks : column_blocks) *= 2;
    }
  }
  return {parts(key.m, row_blocks), parts(parts(key.n, column_blocks), kStrip) * kStrip};
}

// Blocks on the tile registers change no bit of the result, so they may depend on the number of
// threads: enough of them for twice as many, since neighbours slow down some cores and not others.
// Rows and columns cost as measured on GPT shapes; more than one panel costs visits to c.
double amx_cost(const MatmulKey& key, std::int64_t threads, std::int64_t rows,
                std::int64_t columns) {
  constexpr double kRowCost = 100, kColumnCost = 120, kVisits = 1.15;
  const double overhead =
      1 + kRowCost / static_cast<double>(rows) + kColumnCost / static_cast<double>(columns);
  const std::int64_t count = ((key.m + rows - 1) / rows) * ((key.n + columns - 1) / columns);
  const auto slots = [&](std::int64_t workers) {
    return static_cast<double>((count + workers - 1) / workers * workers * rows * columns);
  };
  const std::int64_t depth = key.input == DType::fp32 ? AmxProduct<float>::panel_depth(columns)
                                                      : AmxProduct<bfloat16>::panel_depth(columns);
  const bool revisits = depth < key.k;
  return overhead * (slots(threads) + slots(2 * threads)) * (revisits ? kVisits : 1.0);
}

std::pair<std::int64_t, std::int64_t> amx_blocks(const MatmulKey& key, std::int64_t threads) {
  std::pair<std::int64_t, std::int64_t> best{key.m, key.n};
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t row_limit : {128, 192, 256, 384, 512, 768, 1024, 2048}) {
    for (const std::int64_t column_limit : {128, 192, 256, 384, 512, 768, 1024, 1536}) {
      const std::int64_t rows = std::min(row_limit, key.m), columns = std::min(column_limit, key.n);
      const double cost = amx_cost(key, threads, rows, columns);
      if (cost < least) {
        least = cost;
        best = {rows, columns};
      }
    }
  }
  return best;
}

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

}  // namespace

CpuMatmulPlans::CpuMatmulPlans(Device& device)
    : choices_(device.service<MatmulChoices>()),
      num_threads_(device.pool().num_threads()),
      onednn_(OneDnn::load()),
      openblas_(OpenBlas::load()) {}

std::vector<CpuMatmulPlan> CpuMatmulPlans::candidates(const MatmulKey& key) const {
  // On GPT shapes our own AVX2 and AVX-512 kernels run at 0.95 to 1.3 times the better library's
  // rate. Packing must pay, though, and below a size the start of a oneDNN call outweighs its
  // speed.
  constexpr std::int64_t kFewRows = 32, kSmall = 64 * 64 * 64;
  const bool small = key.m * key.n * key.k <= kSmall;
  std::vector<CpuMethod> order{CpuMethod::amx, CpuMethod::onednn_bf16, CpuMethod::own,
                               CpuMethod::onednn, CpuMethod::openblas};
  if (small || key.m < kFewRows || cpu_level() == 0) {
    std::swap(order[2], order[4]);
  }
  if (key.input == DType::fp32) {  // six products on the tiles for one: only where timing says so
    std::rotate(order.begin(), order.begin() + 1, order.end());
  }
  std::vector<CpuMethod> methods;
  for (const CpuMethod method : order) {
    const bool by_onednn = method == CpuMethod::onednn || method == CpuMethod::onednn_bf16;
    if (available(method, key) && !(by_onednn && small)) {
      methods.push_back(method);
    }
  }
  std::vector<CpuMatmulPlan> plans;
  for (const CpuMethod method : methods) {
    const auto [rows, columns] = method == CpuMethod::own   ? own_blocks(key)
                                 : method == CpuMethod::amx ? amx_blocks(key, num_threads_)
                                                            : best_blocks(key, speed_of(method));
    plans.push_back({method, rows, columns});
  }
  // Timing also tries other cuts with the method that the rule prefers.
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
    case CpuMethod::own:
      return true;
    case CpuMethod::openblas:
      return openblas_ != nullptr && (key.input == DType::fp32 || key.input == DType::fp64);
    case CpuMethod::onednn:
      return onednn_ != nullptr && key.input == DType::fp32;
    case CpuMethod::onednn_bf16:
      return onednn_ != nullptr && key.input == DType::bf16 && multiplies_bf16();
    case CpuMethod::amx:
      return (key.input == DType::bf16 || key.input == DType::fp32) && amx_usable();
  }
  return false;
}

bool CpuMatmulPlans::usable(const CpuMatmulPlan& plan, const MatmulKey& key) const {
  const auto whole_strips = [](std::int64_t block, std::int64_t extent) {
    return block % AmxProduct<bfloat16>::kStrip == 0 || block >= extent;
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
    double least = std::numeric_limits<double>::infinity();
    for (const CpuMatmulPlan& candidate : choices_.timing ? all : std::vector<CpuMatmulPlan>{}) {
      double best = std::numeric_limits<double>::infinity();
      for (int i = 0; i < 3; ++i) {  // the first also compiles
        const auto start = std::chrono::steady_clock::now();
        trial(candidate);
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        best = std::min(best, elapsed.count());
      }
      if (best < least) {
        least = best;
        plan = candidate;
      }
    }
  }
  choices_.store(key, text(*plan));
  return plans_.emplace(key, *plan).first->second;
}

}  // namespace bloomery

// `bloomery bench ops`: rates of the kernels beside what this machine can do at most.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "apps/bench/bench.h"
#include "apps/bench/rows.h"
#include "apps/common/command_line.h"
#include "apps/common/device_choice.h"
#include "apps/common/progress_line.h"
#include "base/error.h"
#include "checkpoint/model_record.h"
#include "config/nearest.h"
#include "ops/matmul/choices.h"

namespace bloomery {
namespace {

struct BenchOpsOptions {
  DeviceChoice device;
  std::string dtype = "auto";
  std::string op;
  std::optional<std::int64_t> micro_batch;
  BenchShapes shapes;
  std::optional<std::int64_t> copy_size, product_size;  // of the ceilings
  double seconds = 0.3;
  bool json = false;
};

void describe(OptionTable& t, BenchOpsOptions& o) {
  t.section("what to measure");
  describe(t, o.device);
  t.add_choice("dtype", o.dtype, "Data type of activations; auto: bf16 on a GPU, fp32 on a CPU.",
               {"auto", "fp32", "bf16", "fp16"});
  t.add("op", o.op, "Only rows whose name contains this text; fp8: the fp8 rows.");
  t.section("shapes");
  t.add("micro-batch-size", o.micro_batch, "Number of sequences; none: 64 on a GPU, 4 on a CPU.",
        at_least(1));
  t.add("seq-length", o.shapes.sequence, "Tokens per sequence.", at_least(1));
  t.add("hidden-size", o.shapes.hidden, "Channels.", at_least(1));
  t.add("num-attention-heads", o.shapes.heads, "Heads.", at_least(1));
  t.add("vocab-size", o.shapes.vocabulary, "Vocabulary size.", at_least(1));
  t.section("measurement");
  t.add("copy-size", o.copy_size,
        "Size of the copy that sets the memory ceiling, in MiB; none: 1024 on a GPU, 256 on a CPU.",
        at_least(1));
  t.add("product-size", o.product_size,
        "Size of the square matrix product that sets the compute ceiling; none: 8192 on a GPU, "
        "2048 on a CPU.",
        at_least(1));
  t.add("seconds", o.seconds, "Measuring time per row in seconds, about.", above(0));
  t.add("json", o.json, "Print one JSON object per line instead of a table.");
}

std::vector<std::string> problems(const BenchOpsOptions& o) {
  std::vector<std::string> found;
  if (o.shapes.hidden % o.shapes.heads != 0) {
    found.push_back(concat("--num-attention-heads ", o.shapes.heads,
                           " does not divide --hidden-size ", o.shapes.hidden));
  }
  if (o.shapes.sequence > INT32_MAX / o.micro_batch.value_or(64)) {
    found.push_back(concat("--micro-batch-size x --seq-length are more than ", INT32_MAX,
                           " tokens; make one of them smaller"));
  }
  return found;
}

struct Result {
  std::string op, shape;
  double seconds = 0, bytes = 0, flops = 0;

  double gigabytes_per_second() const { return bytes / seconds * 1e-9; }
  double teraflops() const { return flops / seconds * 1e-12; }
};

double timed(Device& device, Stream& stream, const std::function<void()>& launch, int repeats) {
  Event start(device), stop(device);
  start.record(stream);
  for (int i = 0; i < repeats; ++i) {
    launch();
  }
  stop.record(stream);
  stop.synchronize();
  return stop.seconds_since(start) / repeats;
}

// Median time of one launch. Short kernels are timed several at once, so that neither the clock's
// grain nor the gap between launches counts.
double median_seconds(Stream& stream, const std::function<void()>& launch, double budget) {
  constexpr double kShortest = 2e-3;
  Device& device = stream.device();
  timed(device, stream, launch, 1);  // chooses plans and touches memory
  const double once = std::max(timed(device, stream, launch, 2), 1e-7);
  const int repeats = static_cast<int>(std::clamp(std::ceil(kShortest / once), 1.0, 1000.0));
  const int samples = static_cast<int>(std::clamp(budget / (once * repeats), 3.0, 50.0));
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    times.push_back(timed(device, stream, launch, repeats));
  }
  std::ranges::nth_element(times, times.begin() + samples / 2);
  return times[samples / 2];
}

Result measure(Stream& stream, DType dtype, const BenchRow& row, double budget) {
  BenchSetup setup(stream, dtype);
  const std::function<void()> launch = row.make(setup);
  stream.synchronize();
  const double seconds = median_seconds(stream, launch, budget);
  return {row.op, row.shape, seconds, setup.bytes, setup.flops};
}

// Prints results as they come, as a table or as JSON lines.
class Report {
 public:
  Report(std::ostream& out, bool json, DType dtype, const std::string& device)
      : out_(out), json_(json), dtype_(name(dtype)), device_(device) {
    if (!json_) {
      out_ << device_ << ", " << dtype_ << "\n\n"
           << std::left << std::setw(28) << "op" << std::setw(22) << "shape" << std::right
           << std::setw(12) << "us" << std::setw(10) << "GB/s" << std::setw(10) << "TFLOP/s"
           << "  of ceiling\n";
    }
  }

  void set_ceilings(const Result& copy, const Result& product) {
    copy_ = copy.gigabytes_per_second();
    product_ = product.teraflops();
    print(copy);
    print(product);
  }

  void print(const Result& result) {
    const bool product = result.flops > 0;
    const double share =
        product ? result.teraflops() / product_ : result.gigabytes_per_second() / copy_;
    if (json_) {
      nlohmann::ordered_json line = {{"op", result.op},
                                     {"shape", result.shape},
                                     {"dtype", dtype_},
                                     {"device", device_},
                                     {"seconds", result.seconds},
                                     {"gigabytes_per_second", result.gigabytes_per_second()},
                                     {"teraflops", result.teraflops()},
                                     {"share_of_ceiling", share}};
      out_ << line.dump() << std::endl;
      return;
    }
    out_ << std::left << std::setw(28) << result.op << std::setw(22) << result.shape << std::right
         << std::fixed << std::setprecision(1) << std::setw(12) << result.seconds * 1e6
         << std::setw(10) << result.gigabytes_per_second() << std::setw(10)
         << std::setprecision(product_ < 10 ? 3 : 1);
    product ? out_ << result.teraflops() : out_ << "";
    out_ << std::setprecision(0) << std::setw(6) << share * 100 << "% "
         << (product ? "product" : "copy") << std::endl;
  }

 private:
  std::ostream& out_;
  bool json_;
  std::string dtype_, device_;
  double copy_ = 1, product_ = 1;
};

std::vector<BenchRow> chosen_rows(const BenchOpsOptions& options) {
  std::vector<BenchRow> rows;
  std::vector<std::string> names;
  std::vector<std::vector<BenchRow> (*)(const BenchShapes&)> families = {
      elementwise_rows, norm_rows, vocabulary_rows, product_rows, attention_rows, optimizer_rows};
  if (options.op.starts_with("fp8")) {  // which not every GPU has
    families = {fp8_rows};
  }
  for (const auto& family : families) {
    for (BenchRow& row : family(options.shapes)) {
      names.push_back(row.op);
      if (row.op.find(options.op) != std::string::npos) {
        rows.push_back(std::move(row));
      }
    }
  }
  check(!rows.empty(), "--op: no row is named like '", options.op, "'",
        suggestion(options.op, names));
  return rows;
}

}  // namespace

int bench_ops(const Arguments& arguments, std::ostream& out) {
  BenchOpsOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery bench ops [OPTIONS]\n\nMeasures each op against copy and "
                    "matrix-product ceilings.\n\nexample:\n  bloomery bench ops --op attention\n",
                    [&] { return problems(options); })) {
    return 0;
  }

  const DeviceOptions device_options = options.device.options();
  const bool on_cuda = device_options.kind == DeviceKind::cuda;
  options.shapes.micro_batch = options.micro_batch.value_or(on_cuda ? 64 : 4);
  const std::vector<BenchRow> rows = chosen_rows(options);

  Device device(device_options);
  device.service<MatmulChoices>().timing = true;
  Stream stream(device);
  const DType dtype = options.dtype != "auto" ? training_dtype_of_name(options.dtype, "--dtype")
                      : on_cuda               ? DType::bf16
                                              : DType::fp32;
  Report report(out, options.json, dtype, device.description());
  report.set_ceilings(
      measure(stream, dtype, copy_ceiling(options.copy_size.value_or(on_cuda ? 1024 : 256)),
              options.seconds),
      measure(stream, dtype, product_ceiling(options.product_size.value_or(on_cuda ? 8192 : 2048)),
              options.seconds));
  ProgressLine progress("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    progress.at(static_cast<std::int64_t>(i), static_cast<std::int64_t>(rows.size()));
    const Result result = measure(stream, dtype, rows[i], options.seconds);
    progress.finish();
    report.print(result);
  }
  return 0;
}

}  // namespace bloomery

#include "apps/bench/floor.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/bench/replay.h"
#include "ops/attention/attention_settings.h"

namespace bloomery {
namespace {

std::vector<Floor::Part> parts_of(const Replay& replay) {
  std::vector<Floor::Part> parts;
  for (const Replay::Kind& kind : replay.kinds()) {
    parts.push_back({kind.text, kind.count, kind.seconds, kind.flops * kind.count});
  }
  return parts;
}

std::string name(AttentionBackend backend) {
  return backend == AttentionBackend::cudnn ? "cuDNN" : "our kernels";
}

void measure_attention(Stream& stream, const StepWork& work, double seconds, Floor& floor) {
  AttentionSettings& settings = stream.device().service<AttentionSettings>();
  const AttentionBackend chosen = settings.backend;
  const auto run = [&](AttentionBackend backend) {
    settings.backend = backend;
    floor.attention_by = name(backend);
    Replay replay(stream);
    add_attention(replay, work);
    replay.run(seconds, floor.by_row);
    floor.attention = parts_of(replay);
  };
  try {
    run(stream.on_cuda() ? AttentionBackend::cudnn : chosen);
  } catch (const Error&) {  // not for these shapes, or not installed
    run(chosen);
  }
  settings.backend = chosen;
}

double copy_rate(Stream& stream, double seconds) {
  BenchSetup setup(stream, DType::fp32);
  const auto copy = copy_ceiling(stream.on_cuda() ? 1024 : 256).make(setup);
  return setup.bytes / sustained_seconds(stream, copy, seconds);
}

void add_bytes(const StepWork& work, Floor& floor) {
  for (const StepWork::Bytes& bytes : work.bytes) {
    auto part = std::ranges::find(floor.bytes, bytes.what, &Floor::Part::what);
    if (part == floor.bytes.end()) {
      part = floor.bytes.insert(part, {.what = bytes.what});
    }
    const double seconds = bytes.count / floor.copy_rate;
    ++part->count;
    part->work += bytes.count;
    part->seconds += seconds;
    floor.by_row[bytes.row] += seconds;
  }
}

double sum(const std::vector<Floor::Part>& parts) {
  double seconds = 0;
  for (const Floor::Part& part : parts) {
    seconds += part.seconds;
  }
  return seconds;
}

// `column`: what is said of a part beside its time.
template <class Column>
std::string lines(const std::string& title, const char* heading,
                  const std::vector<Floor::Part>& parts, const Column& column) {
  std::string text =
      fmt::format("{:<66} {:>10} {:>11} {:>9}\n", title, "calls/step", "ms/step", heading);
  for (const Floor::Part& part : parts) {
    text += fmt::format("  {:<64} {:>10} {:>11.3f} {:>9}\n", part.what, part.count,
                        part.seconds * 1e3, column(part));
  }
  return text;
}

}  // namespace

double Floor::seconds() const { return sum(products) + sum(attention) + sum(bytes); }

Floor measure_floor(Stream& stream, const StepWork& work, double seconds) {
  stream.memory()->trim();
  Floor floor;
  {
    Replay products(stream);
    add_products(products, work);
    products.run(seconds, floor.by_row);
    floor.products = parts_of(products);
  }
  measure_attention(stream, work, seconds, floor);
  floor.copy_rate = copy_rate(stream, seconds);
  add_bytes(work, floor);
  stream.memory()->trim();
  return floor;
}

std::string to_text(const Floor& floor, double step_seconds) {
  double bytes = 0;
  for (const Floor::Part& part : floor.bytes) {
    bytes += part.work;
  }
  return fmt::format(
             "floor {:.2f} ms (products {:.2f}, attention {:.2f}, bytes {:.2f}: {:.2f} GB at "
             "{:.0f} GB/s), step {:.2f} ms, floor / step {:.3f}\n",
             floor.seconds() * 1e3, sum(floor.products) * 1e3, sum(floor.attention) * 1e3,
             sum(floor.bytes) * 1e3, bytes * 1e-9, floor.copy_rate * 1e-9, step_seconds * 1e3,
             floor.seconds() / step_seconds) +
         lines("products: m x n x k, a and b normal or transposed", "TFLOP/s", floor.products,
               [](const Floor::Part& part) {
                 return fmt::format("{:.2f}", part.work / part.seconds * 1e-12);
               }) +
         lines("attention by " + floor.attention_by, "", floor.attention,
               [](const Floor::Part&) { return ""; }) +
         lines("bytes", "GB", floor.bytes,
               [](const Floor::Part& part) { return fmt::format("{:.3f}", part.work * 1e-9); });
}

std::string ceilings_text(const Floor& floor, const TimeTable& table) {
  const auto line = [&](const std::string& name, const std::string& kind, double seconds,
                        double share, double least) {
    std::string text =
        fmt::format("{:<20} {:<12} {:>12.3f} {:>7.2f}%", name, kind, seconds * 1e3, share * 100);
    return text + (least > 0
                       ? fmt::format(" {:>12.3f} {:>7.1f}%\n", least * 1e3, least / seconds * 100)
                       : "\n");
  };
  std::string text = fmt::format("{:<20} {:<12} {:>12} {:>8} {:>12} {:>8}\n", "operation", "kind",
                                 "ms/step", "share", "floor ms", "of it");
  const auto steps = static_cast<double>(std::max<std::int64_t>(table.num_steps, 1));
  const double all = static_cast<double>(table.step_ns) * 1e-9 / steps;
  for (const TimeRow& row : table.rows) {
    const auto found = floor.by_row.find({row.name, row.category});
    const double seconds = static_cast<double>(row.self_ns) * 1e-9 / steps;
    text += line(row.name, row.category, seconds, seconds / all,
                 found == floor.by_row.end() ? 0 : found->second);
  }
  return text + line("sum", "", all, 1, floor.seconds());
}

}  // namespace bloomery

#include "train/report/flops_profile.h"

#include <fmt/core.h>

namespace bloomery {
namespace {

std::string with_prefix(double value, const char* unit) {
  constexpr std::pair<double, const char*> kPrefixes[] = {
      {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "K"}};
  for (const auto& [size, prefix] : kPrefixes) {
    if (value >= size) return fmt::format("{:.2f} {}{}", value / size, prefix, unit);
  }
  return fmt::format("{:.2f} {}", value, unit);
}

}  // namespace

std::string flops_lines(const FlopsProfile& p) {
  const auto flops = [&](const ModelShape& shape) {
    return model_flops(shape, p.sequences, p.length);
  };
  ModelShape headless = p.shape, bare = p.shape;
  headless.padded_vocabulary = 0;
  bare.padded_vocabulary = bare.ffn_width = bare.all_ffn_widths = 0;
  const double all = flops(p.shape), head = all - flops(headless), attention = flops(bare);
  const double done = deepspeed_flops(p.shape, p.sequences, p.length, p.recomputation);
  const double devices = static_cast<double>(p.devices);
  std::string text = fmt::format("flops profiler, iteration {}:", p.iteration);
  const auto add = [&text](const std::string& name, const std::string& value) {
    text += fmt::format("\n    {:.<60} {}", name + " ", value);
  };
  add("ranks", std::to_string(p.devices));
  add("parameters", with_prefix(static_cast<double>(p.parameters), ""));
  add("sequences x tokens", fmt::format("{} x {}", p.sequences, p.length));
  add("forward pass", with_prefix(all / 3, "FLOPs"));
  add("backward pass", with_prefix(all * 2 / 3, "FLOPs"));
  add("of both: attention", fmt::format("{:.1f} %", attention / all * 100));
  add("of both: MLP and experts", fmt::format("{:.1f} %", (all - head - attention) / all * 100));
  add("of both: output head", fmt::format("{:.1f} %", head / all * 100));
  add("with recomputation, by Megatron-DeepSpeed's formula", with_prefix(done, "FLOPs"));
  add("iteration latency", fmt::format("{:.2f} ms", p.seconds * 1e3));
  add("model FLOPS of a rank", with_prefix(all / p.seconds / devices, "FLOPS"));
  add("samples per second", fmt::format("{:.2f}", static_cast<double>(p.sequences) / p.seconds));
  return text;
}

}  // namespace bloomery

#include "nn/adapter.h"

#include <algorithm>

namespace bloomery {
namespace {

// How a weight is fused of several: as they would have products of their own.
void set_parts(LowRankOptions& adapter, const ModelOptions& o, std::string_view layer) {
  if (layer.ends_with(".qkv")) {
    adapter.dim = 1;
    adapter.sizes = {o.attention.num_heads / o.attention.num_groups, 1, 1};
  } else if (layer.ends_with(".up") && o.mlp.gated()) {
    adapter.dim = 0;
    adapter.sizes = {1, 1};
  }
}

bool names(std::string_view target, const std::string& layer) {
  return target == "*" || target == layer || layer.ends_with("." + std::string(target));
}

}  // namespace

std::optional<LowRankOptions> adapter_for(const ModelOptions& options, const std::string& layer) {
  const AdapterOptions& o = options.adapter;
  if (!o.enabled) {
    return std::nullopt;
  }
  LowRankOptions adapter{
      .rank = o.rank, .scale = static_cast<float>(o.scale()), .dropout = o.dropout};
  if (std::ranges::any_of(o.targets, [&](const auto& target) { return names(target, layer); })) {
    return adapter;
  }
  set_parts(adapter, options, layer);
  int next = 0;
  for (std::size_t part = 0; part < adapter.sizes.size(); ++part) {
    const std::string name = concat(layer, ".", part);
    const bool chosen =
        std::ranges::any_of(o.targets, [&](const auto& target) { return names(target, name); });
    adapter.places.push_back(chosen ? next++ : -1);
  }
  return next > 0 ? std::optional(adapter) : std::nullopt;
}

bool is_adapter_parameter(std::string_view name) {
  return name.ends_with(kFirstFactor) || name.ends_with(kSecondFactor);
}

ModelOptions without_adapter(ModelOptions options) {
  options.adapter = {};
  return options;
}

}  // namespace bloomery

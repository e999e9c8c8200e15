#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/hf_document.h"

namespace bloomery {
namespace {

constexpr std::int64_t kDefaultWindow = 4096, kDefaultMaxWindowLayers = 28;
constexpr const char *kSliding = "sliding_attention", *kFull = "full_attention";

// sliding_window: absent is the default, null is none.
std::int64_t read_window(HfConfig::Json& json) {
  constexpr const char* kKey = "sliding_window";
  if (!json.document.contains(kKey)) {
    return kDefaultWindow;
  }
  const HfDocument value = json.document[kKey];
  const bool good = value.is_null() || (value.is_number_integer() && value > 0 &&
                                        value <= std::numeric_limits<std::int32_t>::max());
  json.require(good, kKey, value, "must be an integer from 1 to 2147483647, or null");
  return good && !value.is_null() ? value.get<std::int64_t>() : 0;
}

// 1 for each layer that slides.
std::vector<std::int64_t> read_layers(HfConfig::Json& json, std::int64_t num_layers) {
  std::vector<std::int64_t> slides(static_cast<std::size_t>(num_layers), 0);
  const HfDocument types = json.find({"layer_types"});
  if (types.is_null()) {
    const double first =
        json.number(json.document, "max_window_layers", kDefaultMaxWindowLayers, 0, 1e9);
    for (std::int64_t layer = 0; layer < num_layers; ++layer) {
      slides[static_cast<std::size_t>(layer)] = static_cast<double>(layer) >= first ? 1 : 0;
    }
    return slides;
  }
  const bool good = types.is_array() && std::ssize(types) == num_layers &&
                    std::ranges::all_of(types, [](const HfDocument& type) {
                      return type == kSliding || type == kFull;
                    });
  json.require(good, "layer_types", types,
               "must say sliding_attention or full_attention for each layer");
  for (std::size_t layer = 0; good && layer < slides.size(); ++layer) {
    slides[layer] = types[layer] == kSliding ? 1 : 0;
  }
  return slides;
}

}  // namespace

void HfConfig::extras(ModelOptions& o, const HfExtras& extras) {
  fixed(
      o.attention.head_norm, extras.head_norms,
      extras.head_norms ? "its queries and keys have no norms" : "its queries and keys have norms");
  fixed(o.vocabulary.scaled, extras.scaled_embeddings,
        extras.scaled_embeddings ? "its embeddings are not scaled" : "its embeddings are scaled");
  if (!extras.windows) {
    fixed(o.attention.window, 0, "it has a sliding window");
  }
}

void HfConfig::window(SelfAttentionOptions& attention) {
  if (reading()) {
    attention.window = read_window(*json_);
    return;
  }
  require(attention.window_layers.empty(), "only some of its layers have a sliding window");
  json_->document["sliding_window"] = attention.window > 0 ? HfDocument(attention.window) : nullptr;
}

void HfConfig::window_by_layer(SelfAttentionOptions& attention, std::int64_t num_layers) {
  bool used = attention.window > 0;
  flag("use_sliding_window", used, false);
  if (reading()) {
    attention.window = used ? read_window(*json_) : 0;
    attention.window_layers = read_layers(*json_, num_layers);
    const bool slides = std::ranges::count(attention.window_layers, 1) > 0;
    require(attention.window > 0 || !slides || !json_->find({"layer_types"}).is_array(),
            "layer_types has sliding_attention, but there is no sliding window");
    attention.window = slides ? attention.window : 0;
    return;
  }
  if (!used) {
    json_->document["sliding_window"] = nullptr;
    return;
  }
  HfDocument types = HfDocument::array();
  std::int64_t first = num_layers;  // for readers that know no layer_types
  for (std::int64_t layer = num_layers - 1; layer >= 0; --layer) {
    first = attention.window_of(layer) > 0 && first == layer + 1 ? layer : first;
  }
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    types.push_back(attention.window_of(layer) > 0 ? kSliding : kFull);
  }
  json_->document["sliding_window"] = attention.window;
  json_->document["max_window_layers"] = first;
  json_->document["layer_types"] = types;
}

}  // namespace bloomery

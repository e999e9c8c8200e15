#include "checkpoint/megatron/names.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::string_view kLayers = ".layers.", kExperts = ".deepspeed_experts.",
                           kEncoder = "language_model.encoder.";

std::string numbered(std::string_view pattern, std::int64_t number, char mark = '#') {
  const std::size_t place = pattern.find(mark);
  return place == pattern.npos
             ? std::string(pattern)
             : concat(pattern.substr(0, place), number, pattern.substr(place + 1));
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != text.npos) {
    text.replace(at, from.size(), to);
  }
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0
             ? std::optional(value)
             : std::nullopt;
}

// The number that follows `word` in a name.
std::optional<std::int64_t> number_after(std::string_view word, std::string_view name) {
  const std::size_t at = name.find(word);
  if (at == name.npos) {
    return std::nullopt;
  }
  const std::size_t begin = at + word.size();
  return number(name.substr(begin, name.find('.', begin) - begin));
}

std::string with_number_after(std::string_view word, std::string_view name, std::int64_t number) {
  const std::size_t begin = name.find(word) + word.size();
  return concat(name.substr(0, begin), number, name.substr(name.find('.', begin)));
}

}  // namespace

MegatronNames::MegatronNames(const ModelOptions& options, int tensor,
                             std::int64_t padded_vocabulary, QkvOrder order, bool cut_experts,
                             int joined)
    : tensor_(tensor),
      padded_vocabulary_(padded_vocabulary),
      order_(order),
      cut_experts_(cut_experts),
      joined_(joined),
      vocabulary_(options.vocabulary.size) {
  const Family& family = find_family(options.family);
  check(!family.megatron.tensors.empty(), "Megatron has no models of the family ", family.name);
  const Model model(options, Mesh::single(), DType::fp32);
  std::map<std::string, Shape> wanted;
  for (const Parameter* parameter : model.parameters()) {
    wanted.emplace(parameter->name, parameter->box.global);
  }
  for (const MegatronTensor& rule : family.megatron.tensors) {
    const bool layered = rule.ours.find('#') != rule.ours.npos;
    for (std::int64_t layer = 0; layer < (layered ? family.num_blocks(options) : 1); ++layer) {
      const auto found = wanted.find(numbered(rule.ours, layer));
      if (found != wanted.end()) {
        add(rule, layer, found->second);
        wanted.erase(found);
      }
    }
  }
  check(wanted.empty(), "Megatron has no place for ", wanted.empty() ? "" : wanted.begin()->first);
}

void MegatronNames::add(const MegatronTensor& rule, std::int64_t layer, const Shape& shape) {
  Entry entry{.ours = numbered(rule.ours, layer), .shape = shape, .cut = rule.cut};
  const bool whole = !cut_experts_ && rule.ours.find(".moe.") != rule.ours.npos;
  entry.cut = whole ? MegatronTensor::kWhole : entry.cut + (entry.cut < 0 ? shape.rank() : 0);
  entry.vocabulary =
      rule.ours.find('#') == rule.ours.npos && entry.cut == 0 && shape[0] == vocabulary_;
  const std::int64_t rows = entry.cut == MegatronTensor::kWhole ? tensor_
                            : entry.vocabulary                  ? padded_vocabulary_
                                                                : shape[entry.cut];
  check(rows % tensor_ == 0 && (!entry.vocabulary || rows >= shape[0]), entry.ours, " ", shape,
        " with ", rows, " rows cannot be cut into ", tensor_, " tensor ranks");
  const std::string theirs = numbered(rule.theirs, layer);
  if (theirs.find('*') == theirs.npos) {
    entries_.emplace(theirs, std::move(entry));
    return;
  }
  for (std::int64_t expert = 0; expert < shape[0]; ++expert) {
    entry.expert = expert;
    entries_.emplace(numbered(theirs, expert, '*'), entry);
  }
}

const MegatronNames::Entry* MegatronNames::find(const std::string& theirs) const {
  const auto found = entries_.find(theirs);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<TensorPart> MegatronNames::segments(const Entry& entry, int rank) const {
  Box whole = Box::whole(entry.shape);
  if (entry.expert) {
    whole.offset[0] = *entry.expert;
    whole.extent[0] = 1;
  }
  if (entry.cut == MegatronTensor::kWhole) {
    return {{entry.ours, whole}};
  }
  std::vector<TensorPart> segments;
  if (!entry.vocabulary) {
    const Box box = whole.split(entry.cut, rank, tensor_);
    const bool fused =
        entry.ours.find(".qkv.") != entry.ours.npos ||
        (entry.ours.find(".cross.key_value.") != entry.ours.npos && order_ != QkvOrder::thirds);
    if (fused && order_ != QkvOrder::by_head) {
      for (int part = 0; part < joined_; ++part) {
        reorder(segments, entry, box.split(0, part, joined_));
      }
    } else {
      segments.push_back({entry.ours, box});
    }
    return segments;
  }
  const std::int64_t rows = padded_vocabulary_ / tensor_, begin = rank * rows, end = begin + rows;
  const std::int64_t size = entry.shape[0];
  const auto add = [&](const std::string& name, std::int64_t first_row, std::int64_t all,
                       std::int64_t from, std::int64_t to) {
    if (from < to) {
      Shape shape = entry.shape;
      shape[0] = all;
      Box box = Box::whole(shape);
      box.offset[0] = from - first_row;
      box.extent[0] = to - from;
      segments.push_back({name, box});
    }
  };
  add(entry.ours, 0, size, std::min(begin, size), std::min(end, size));
  add(concat(entry.ours, kPaddingSuffix), size, padded_vocabulary_ - size, std::max(begin, size),
      std::max(end, size));
  return segments;
}

// Ours is [heads, kinds, channels(, hidden)].
void MegatronNames::reorder(std::vector<TensorPart>& segments, const Entry& entry,
                            const Box& box) const {
  const std::int64_t kinds = entry.shape[1];
  check(kinds <= 3, entry.ours,
        ": heads share keys and values, which files with queries, keys and "
        "values apart (an old version, or thirds of Megatron-DeepSpeed since FPDT) cannot hold");
  const auto part = [&](std::int64_t kind) {
    Box one = box;
    one.offset[1] = kind;
    one.extent[1] = 1;
    return one;
  };
  if (order_ != QkvOrder::by_channel) {
    for (std::int64_t kind = 0; kind < kinds; ++kind) {
      segments.push_back({entry.ours, part(kind)});
    }
    return;
  }
  for (std::int64_t head = 0; head < box.extent[0]; ++head) {
    for (std::int64_t channel = 0; channel < box.extent[2]; ++channel) {
      for (std::int64_t kind = 0; kind < kinds; ++kind) {
        Box one = part(kind);
        one.offset[0] += head;
        one.offset[2] += channel;
        one.extent[0] = one.extent[2] = 1;
        segments.push_back({entry.ours, one});
      }
    }
  }
}

Shape MegatronNames::local_shape(const Entry& entry, const std::string& theirs) const {
  Shape shape = entry.shape;
  shape[0] = entry.expert ? 1 : shape[0];
  if (entry.cut != MegatronTensor::kWhole) {
    shape[entry.cut] = (entry.vocabulary ? padded_vocabulary_ : shape[entry.cut]) / tensor_;
  }
  // Weights are matrices and all else is flat.
  const bool matrix = theirs.ends_with(".weight") && shape.rank() > 1;
  std::int64_t rows = 1;
  for (int i = 0; i < shape.rank() - (matrix ? 1 : 0); ++i) {
    rows *= shape[i];
  }
  return matrix ? Shape{rows, shape.back()} : Shape{rows};
}

std::string name_of_pipeline_layer(std::int64_t layer, std::string_view key) {
  if (key == "lm_head.weight") {
    return "language_model.output_layer.weight";
  }
  if (key.starts_with("word_embeddings.") || key.starts_with("position_embeddings.")) {
    return concat("language_model.embedding.", key);
  }
  return key == "weight" || key == "bias"
             ? concat(kEncoder, "final_layernorm.", key)
             : concat(kEncoder, "layers.", layer - kFirstPipelineLayer, ".", key);
}

std::string name_of_pipeline_parameter(std::string_view parameter) {
  constexpr std::string_view kTied = "tied_modules.embed.";
  if (parameter.starts_with(kTied)) {
    return concat("language_model.embedding.", parameter.substr(kTied.size()));
  }
  const std::size_t dot = parameter.find('.');
  const auto layer = dot == parameter.npos ? std::nullopt : number(parameter.substr(0, dot));
  return layer ? name_of_pipeline_layer(*layer, parameter.substr(dot + 1)) : std::string(parameter);
}

std::string current_name(std::string name) {
  if (name.starts_with("module.")) {
    name.erase(0, 7);
  }
  if (name.starts_with("encoderlayers.")) {  // experts, which lie beside the model
    name.insert(7, ".");
    name.insert(0, "language_model.");
  }
  replace(name, "language_model.transformer.", kEncoder);
  replace(name, ".attention.", ".self_attention.");
  return name;
}

std::optional<std::int64_t> layer_of_name(std::string_view name) {
  return number_after(kLayers, name);
}

std::string with_layer(std::string_view name, std::int64_t layer) {
  return with_number_after(kLayers, name, layer);
}

std::optional<std::int64_t> expert_of_name(std::string_view name) {
  return number_after(kExperts, name);
}

std::string with_expert(std::string_view name, std::int64_t expert) {
  return with_number_after(kExperts, name, expert);
}

}  // namespace bloomery

#include "samples/language_model_dataset.h"

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

template <class T>
std::span<T> array_if(bool wanted, const Sample& sample, std::string_view name) {
  return wanted ? sample.array<T>(name) : std::span<T>();
}

}  // namespace

DocumentRules document_rules(const DataOptions& options, std::optional<TokenId> eod) {
  const bool any =
      options.reset_position_ids || options.reset_attention_mask || options.eod_mask_loss;
  check(!any || eod.has_value(),
        "--reset-position-ids, --reset-attention-mask and --eod-mask-loss need a tokenizer with an "
        "end-of-document token");
  return {eod, options.reset_position_ids, options.reset_attention_mask, options.eod_mask_loss};
}

SampleFields language_model_fields(std::int64_t length, const DocumentRules& rules) {
  SampleFields fields{{"tokens", DType::int32, {length}}, {"labels", DType::int32, {length}}};
  if (rules.reset_position_ids) {
    fields.push_back({"positions", DType::int32, {length}});
  }
  if (rules.reset_attention_mask) {
    fields.push_back({"key_begin", DType::int32, {length}});
  }
  if (rules.eod_mask_loss) {
    fields.push_back({"loss_mask", DType::fp32, {length}});
  }
  return fields;
}

LanguageModelDataset::LanguageModelDataset(std::unique_ptr<Dataset> texts,
                                           const DocumentRules& rules)
    : texts_(std::move(texts)),
      rules_(rules),
      length_(texts_->fields().front().shape[0] - 1),
      fields_(language_model_fields(length_, rules)) {}

void LanguageModelDataset::read(std::int64_t k, const Sample& out) const {
  HostBatch memory(DeviceKind::cpu, texts_->fields(), 1);
  texts_->read(k, Sample(memory, 0));
  write_text(memory.array<TokenId>("tokens"), rules_, out);
}

void write_text(std::span<const TokenId> text, const DocumentRules& rules, const Sample& out) {
  const std::size_t length = text.size() - 1;
  std::ranges::copy(text.first(length), out.array<TokenId>("tokens").begin());
  std::ranges::copy(text.last(length), out.array<TokenId>("labels").begin());
  const auto positions = array_if<std::int32_t>(rules.reset_position_ids, out, "positions");
  const auto key_begin = array_if<std::int32_t>(rules.reset_attention_mask, out, "key_begin");
  const auto loss_mask = array_if<float>(rules.eod_mask_loss, out, "loss_mask");
  if (positions.empty() && key_begin.empty() && loss_mask.empty()) {
    return;
  }
  std::int32_t document = 0;  // where the current document starts
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(length); ++i) {
    const bool is_end = text[i] == *rules.eod;
    if (!positions.empty()) {
      positions[i] = i - document;
    }
    if (!key_begin.empty()) {
      key_begin[i] = document;
    }
    if (!loss_mask.empty()) {
      loss_mask[i] = is_end ? 0.0f : 1.0f;
    }
    document = is_end ? i + 1 : document;  // the end belongs to its document
  }
}

}  // namespace bloomery

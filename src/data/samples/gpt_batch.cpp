#include "data/samples/gpt_batch.h"

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

// Takes the next `count` values of a piece of memory.
template <class T>
std::span<T> take(std::byte*& at, std::int64_t count) {
  const std::span<T> values(reinterpret_cast<T*>(at), static_cast<std::size_t>(count));
  at += values.size_bytes();
  return values;
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

GptBatch::GptBatch(DeviceKind kind, std::int64_t num_sequences, std::int64_t length)
    : num_sequences_(num_sequences),
      length_(length),
      memory_(kind, num_sequences * (sizeof(std::int64_t) +
                                     length * (4 * sizeof(std::int32_t) + sizeof(float)))) {
  auto* at = static_cast<std::byte*>(memory_.data());
  samples = take<std::int64_t>(at, num_sequences);
  for (std::span<std::int32_t>* array : {&tokens, &labels, &positions, &key_begin}) {
    *array = take<std::int32_t>(at, num_sequences * length);
  }
  loss_mask = take<float>(at, num_sequences * length);
}

void fill(GptBatch& batch, const SampleSource& source, std::span<const std::int64_t> chosen,
          std::int64_t first_consumed, const DocumentRules& rules) {
  const std::int64_t length = batch.length();
  check(static_cast<std::int64_t>(chosen.size()) == batch.num_sequences() &&
            source.num_tokens() == length + 1,
        "a batch of ", batch.num_sequences(), " x ", length, " cannot hold ", chosen.size(),
        " samples of ", source.num_tokens(), " tokens");
  batch.has_key_begin = rules.reset_attention_mask;
  batch.has_loss_mask = rules.eod_mask_loss;
  std::vector<TokenId> text(source.num_tokens());
  for (std::int64_t s = 0; s < batch.num_sequences(); ++s) {
    source.read(chosen[s], text);
    batch.samples[s] = first_consumed + s;
    std::copy_n(text.begin(), length, batch.tokens.begin() + s * length);
    std::copy_n(text.begin() + 1, length, batch.labels.begin() + s * length);
    std::int32_t document = 0;  // where the current document starts
    for (std::int64_t i = 0; i < length; ++i) {
      const auto place = static_cast<std::int32_t>(i);
      const bool is_end = rules.eod && text[i] == *rules.eod;
      const std::int64_t t = s * length + i;
      batch.positions[t] = rules.reset_position_ids ? place - document : place;
      batch.key_begin[t] = rules.reset_attention_mask ? document : 0;
      batch.loss_mask[t] = rules.eod_mask_loss && is_end ? 0.0f : 1.0f;
      document = is_end ? place + 1 : document;  // the end belongs to its document
    }
  }
}

}  // namespace bloomery

#include "retrieve/text_vectors.h"

#include <algorithm>

#include "evaluate/scorer.h"
#include "models/family.h"
#include "ops/arithmetic/arithmetic.h"
#include "samples/ict_dataset.h"

namespace bloomery {
namespace {

const ModelOptions& retriever(const LoadedModel& model) {
  check(find_family(model.options().family).towers != nullptr, "the model of ",
        model.folder().string(), " is a ", model.options().family,
        ", no retriever: train one with `bloomery pretrain_ict`");
  return model.options();
}

// Megatron's length of texts, where none is asked for.
std::int64_t length_of(const ModelOptions& options, std::int64_t asked) {
  constexpr std::int64_t kUsual = 256;
  const std::int64_t least = 4;  // [CLS] title [SEP] text [SEP], of which something is left
  const std::int64_t length = asked > 0 ? checked_seq_length(options, asked)
                                        : std::min(kUsual, max_length(options).value_or(kUsual));
  check(length >= least, "--retriever-seq-length ", length, " is too short for texts");
  return length;
}

TokenId require_token(const std::optional<TokenId>& token, const char* name) {
  check(token.has_value(), "the tokenizer has no ", name, ", which texts of a retriever need");
  return *token;
}

Value run_tower(LoadedModel& model, const Batch& batch, BlockRange tower, Value State::*result) {
  Context context = model.context(batch);
  const std::span blocks = std::span(model.model().blocks())
                               .subspan(static_cast<std::size_t>(tower.begin),
                                        static_cast<std::size_t>(tower.end - tower.begin));
  return run_blocks(context, {}, blocks, {}).*result;
}

Tensor in_fp32(Stream& stream, const Tensor& x) {
  if (x.dtype() == DType::fp32) {
    return x;
  }
  Tensor y = Tensor::empty(stream, DType::fp32, x.shape());
  launch(stream, ScaleAdd{.x = x, .y = y});
  return y;
}

}  // namespace

TextVectors::TextVectors(LoadedModel& model, std::int64_t seq_length)
    : model_(model),
      length_(length_of(retriever(model), seq_length)),
      towers_(find_family(model.options().family).towers(model.options())),
      cls_(require_token(model.tokenizer().special().cls, "[CLS]")),
      sep_(require_token(model.tokenizer().special().sep, "[SEP]")),
      encoder_(model.tokenizer().make_encoder({.add_special_tokens = false})) {}

std::vector<TokenId> TextVectors::encoded(std::string_view text) {
  std::vector<TokenId> ids;
  encoder_->encode(text, ids);
  return ids;
}

std::vector<TokenId> TextVectors::query(std::string_view text) {
  return framed_text({cls_, sep_}, nullptr, encoded(text), length_);
}

std::vector<TokenId> TextVectors::context(std::string_view title, std::string_view text) {
  const std::vector<TokenId> ids = encoded(title);
  return framed_text({cls_, sep_}, &ids, encoded(text), length_);
}

Batch TextVectors::upload(const std::vector<std::vector<TokenId>>& tokens) const {
  const std::vector<std::span<const TokenId>> views(tokens.begin(), tokens.end());
  Batch batch = upload_tokens(model_.stream(), views);
  std::vector<std::int32_t> ends;
  for (const auto& sequence : tokens) {
    ends.insert(ends.end(), static_cast<std::size_t>(batch.length),
                static_cast<std::int32_t>(sequence.size()));
  }
  batch.key_end = Tensor::from_host(model_.stream(), ends, {batch.num_tokens()});
  batch.key_begin = Tensor::zeros(model_.stream(), DType::int32, {batch.num_tokens()});
  return batch;
}

Tensor TextVectors::queries(const std::vector<std::vector<TokenId>>& tokens) {
  const Batch batch = upload(tokens);
  return in_fp32(model_.stream(), run_tower(model_, batch, towers_.queries, &State::stream).data);
}

Tensor TextVectors::contexts(const std::vector<std::vector<TokenId>>& tokens) {
  Batch batch;
  batch.encoder = std::make_shared<Batch>(upload(tokens));
  return in_fp32(model_.stream(), run_tower(model_, batch, towers_.contexts, &State::encoder).data);
}

}  // namespace bloomery

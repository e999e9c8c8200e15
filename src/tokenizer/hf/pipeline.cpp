#include "tokenizer/hf/pipeline.h"

#include <algorithm>

#include "tokenizer/hf/char_classes.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_mark.h"

namespace bloomery::hf {

const ByteBpe* Pipeline::engine() const {
  const auto* bpe = dynamic_cast<const ByteBpeModel*>(model.get());
  return bpe != nullptr ? &bpe->engine() : nullptr;
}

PipelineEncoder::PipelineEncoder(const Pipeline& pipeline, const EncodeOptions& options)
    : pipeline_(pipeline), options_(options) {
  const ByteBpe* engine = pipeline_.engine();
  if (engine != nullptr && pipeline_.pre_tokenizers.byte_level) {
    engine_ =
        std::make_unique<ByteBpeEncoder>(*engine, pipeline_.pre_tokenizers.byte_level->pattern);
  } else {
    model_ = pipeline.model->make_encoder();
  }
  if (pipeline_.bert && !pipeline_.added->any(true)) {
    bert_words_ = std::make_unique<BertWordSplitter>(*pipeline_.bert);
  }
}

void PipelineEncoder::encode(std::string_view text, std::vector<TokenId>& ids) {
  const PostProcessor& around = pipeline_.post_processor;
  if (options_.add_special_tokens) {
    ids.insert(ids.end(), around.before.begin(), around.before.end());
  }
  parts_.clear();
  pipeline_.added->split(text, false, options_.parse_special, parts_);
  for (const AddedTokens::Part& part : parts_) {
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
    } else {
      encode_stretch(text.substr(part.begin, part.end - part.begin), part.begin == 0, ids);
    }
  }
  if (options_.add_special_tokens) {
    ids.insert(ids.end(), around.after.begin(), around.after.end());
  }
}

void PipelineEncoder::encode_stretch(std::string_view text, bool at_start,
                                     std::vector<TokenId>& ids) {
  if (bert_words_) {
    bert_words_->split(text, [&](std::string_view word) { model_->encode(word, ids); });
    return;
  }
  const Normalizer* normalizer = pipeline_.normalizer.get();
  if (normalizer != nullptr && !normalizer->leaves(text)) {
    stretch_.text.assign(text);
    stretch_.at_start = at_start;
    normalizer->apply(stretch_);
    text = stretch_.text;
    at_start = stretch_.at_start;
  }
  if (!pipeline_.added->any(true)) {
    encode_normalized(text, at_start, ids);
    return;
  }
  normalized_parts_.clear();
  pipeline_.added->split(text, true, options_.parse_special, normalized_parts_);
  for (const AddedTokens::Part& part : normalized_parts_) {
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
    } else {
      encode_normalized(text.substr(part.begin, part.end - part.begin), at_start && part.begin == 0,
                        ids);
    }
  }
}

std::string_view PipelineEncoder::spaced_words(std::string_view text) {
  if (text.find(kWordMark) != text.npos) return {};
  spaced_.resize(text.size() + 1);
  char* to = spaced_.data();
  bool after_space = true;
  const auto put = [&](std::size_t at, std::size_t length, bool is_space) {
    if (is_space) {
      after_space = true;
      return;
    }
    if (after_space) *to++ = ' ';
    after_space = false;
    to = std::copy_n(text.data() + at, length, to);
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      put(at++, 1, byte == ' ' || (byte >= '\t' && byte <= '\r'));
      continue;
    }
    const Utf8Char next = utf8_at(text, at);
    put(at, static_cast<std::size_t>(next.length), is_space(next.code));
    at += static_cast<std::size_t>(next.length);
  }
  return {spaced_.data(), to};
}

void PipelineEncoder::encode_normalized(std::string_view text, bool at_start,
                                        std::vector<TokenId>& ids) {
  if (text.empty()) return;
  if (engine_) {
    if (pipeline_.pre_tokenizers.byte_level->add_prefix_space && !text.starts_with(' ')) {
      prefixed_.assign(1, ' ').append(text);
      text = prefixed_;
    }
    engine_->encode(text, ids);
    return;
  }
  if (pipeline_.pre_tokenizers.steps.empty()) {
    model_->encode(text, ids);
    return;
  }
  if (pipeline_.pre_tokenizers.marked_words && model_->encode_spaced(spaced_words(text), ids)) {
    return;
  }
  pieces_.text = text;
  pieces_.list.assign(1, {0, text.size(), at_start});
  pieces_.byte_level = false;
  for (const auto& step : pipeline_.pre_tokenizers.steps) step->apply(pieces_);
  for (const Piece& piece : pieces_.list) {
    if (pieces_.byte_level) {
      model_->encode_bytes(pieces_.at(piece), ids);
    } else {
      model_->encode(pieces_.at(piece), ids);
    }
  }
}

}  // namespace bloomery::hf

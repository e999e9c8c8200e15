#include "tokenizer/hf/hf_tokenizer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/hf/bert_normalizer.h"
#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/pipeline.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

class HfTokenizer : public Tokenizer {
 public:
  HfTokenizer(hf::Pipeline pipeline, const SpecialTokenNames& names)
      : pipeline_(std::move(pipeline)) {
    if (pipeline_.decoder != nullptr && pipeline_.decoder->is_byte_level()) list_bytes();
    name_special(names);
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options) const override {
    return std::make_unique<hf::PipelineEncoder>(pipeline_, options);
  }

  std::string decode(std::span<const TokenId> ids) const override {
    if (!offsets_.empty()) return decode_bytes(ids);
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const TokenId id : ids) {
      const std::string* token = spelling(id);
      if (token == nullptr) fail_unknown(id);
      tokens.push_back(*token);
    }
    if (tokens.empty()) return {};
    if (pipeline_.decoder != nullptr) pipeline_.decoder->apply(tokens);
    std::string text;
    for (const std::string& token : tokens) {
      if (pipeline_.decoder == nullptr && &token != tokens.data()) text += ' ';
      text += token;
    }
    return text;
  }

  std::int64_t vocab_size() const override {
    return std::max<std::int64_t>(pipeline_.model->vocabulary().end_id(),
                                  pipeline_.added->end_id());
  }

  std::string piece(TokenId id) const override {
    if (const hf::AddedToken* added = pipeline_.added->find(id)) return added->content;
    const std::string* piece = pipeline_.model->vocabulary().piece(id);
    return piece == nullptr ? std::string() : *piece;
  }

  std::optional<TokenId> find(std::string_view piece) const override {
    if (const hf::AddedToken* added = pipeline_.added->find(piece)) return added->id;
    return pipeline_.model->vocabulary().find(piece);
  }

  const SpecialTokens& special() const override { return special_; }

 private:
  // What the decoder gets for an id: the spelling under which the token is looked for. Null when
  // no token has the id.
  const std::string* spelling(TokenId id) const {
    if (const hf::AddedToken* added = pipeline_.added->find(id)) return &added->pattern;
    return pipeline_.model->vocabulary().piece(id);
  }

  [[noreturn]] void fail_unknown(TokenId id) const {
    throw Error(concat("token id ", id, " is not in the vocabulary of ", vocab_size(), " tokens"));
  }

  void list_bytes() {
    offsets_.push_back(0);
    for (TokenId id = 0; id < vocab_size(); ++id) {
      if (const std::string* token = spelling(id)) bytes_ += hf::byte_level_bytes(*token);
      offsets_.push_back(bytes_.size());
    }
  }

  std::string decode_bytes(std::span<const TokenId> ids) const {
    std::string text;
    for (const TokenId id : ids) {
      const auto at = static_cast<std::size_t>(id);
      if (id < 0 || at + 1 >= offsets_.size()) fail_unknown(id);
      const std::size_t size = offsets_[at + 1] - offsets_[at];
      if (size == 0 && spelling(id) == nullptr) fail_unknown(id);
      text.append(bytes_, offsets_[at], size);
    }
    return is_utf8(text) ? text : repair_utf8(text);
  }

  void name_special(const SpecialTokenNames& names) {
    const auto find_any = [&](const std::string& given,
                              std::initializer_list<const char*> usual) -> std::optional<TokenId> {
      if (!given.empty()) return find(given);
      for (const char* name : usual) {
        if (const std::optional<TokenId> id = find(name)) return id;
      }
      return std::nullopt;
    };
    special_.bos = find_any(names.bos, {"<s>", "<|begin_of_text|>", "<bos>"});
    special_.eos = find_any(names.eos, {"</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>"});
    special_.pad = find_any(names.pad, {"<pad>", "[PAD]", "<|padding|>"});
    special_.unk = find_any(names.unk, {"<unk>", "[UNK]"});
    special_.cls = find_any(names.cls, {"[CLS]"});
    special_.sep = find_any(names.sep, {"[SEP]"});
    special_.mask = find_any(names.mask, {"[MASK]", "<mask>"});
    special_.eod = special_.eos ? special_.eos : special_.sep;
  }

  hf::Pipeline pipeline_;
  SpecialTokens special_;
  std::string bytes_;  // of all tokens one after another, when the decoder only joins bytes
  std::vector<std::size_t> offsets_;  // of each id in bytes_; empty when the decoder does more
};

// How deep arrays and objects stand in one another; strings are passed over.
int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

// BERT's options when normalizer and pre-tokenizer are both BERT's.
std::optional<BertTextOptions> find_bert(const hf::Fields& fields) {
  const nlohmann::json* normalizer = fields.find("normalizer");
  const nlohmann::json* pre_tokenizer = fields.find("pre_tokenizer");
  if (normalizer == nullptr || pre_tokenizer == nullptr) return std::nullopt;
  const hf::Fields cleaning(*normalizer, "normalizer");
  if (cleaning.type() != "BertNormalizer" ||
      hf::Fields(*pre_tokenizer, "pre_tokenizer").type() != "BertPreTokenizer") {
    return std::nullopt;
  }
  return hf::read_bert_options(cleaning);
}

hf::Pipeline read_pipeline(const nlohmann::json& root) {
  const hf::Fields fields(root, "tokenizer.json");
  hf::Pipeline pipeline;
  const nlohmann::json* model = fields.find("model");
  check(model != nullptr && model->is_object(),
        "not a tokenizer.json: it has no object 'model'. A vocab.json needs its merges too: "
        "--tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt");
  pipeline.model = hf::read_model(*model);
  if (const nlohmann::json* object = fields.find("normalizer")) {
    pipeline.normalizer = hf::read_normalizer(*object);
  }
  if (const nlohmann::json* object = fields.find("pre_tokenizer")) {
    pipeline.pre_tokenizers = hf::read_pre_tokenizers(*object);
  }
  pipeline.bert = find_bert(fields);
  if (const nlohmann::json* object = fields.find("post_processor")) {
    pipeline.post_processor = hf::read_post_processor(*object);
  }
  if (const nlohmann::json* object = fields.find("decoder")) {
    pipeline.decoder = hf::read_decoder(*object);
  }
  pipeline.added = std::make_unique<hf::AddedTokens>(
      fields.find("added_tokens"), pipeline.model->vocabulary(), pipeline.normalizer.get());
  return pipeline;
}

}  // namespace

nlohmann::json parse_tokenizer_json(std::string_view text, const std::string& name) {
  // Components hold components; reading them takes stack.
  constexpr int kDeepest = 100;
  check(nesting(text) <= kDeepest, name, " nests its objects more than ", kDeepest, " deep");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(concat(name, " is not valid JSON: ", error.what()));
  }
}

std::shared_ptr<const Tokenizer> make_hf_tokenizer(const nlohmann::json& root,
                                                   const std::string& name,
                                                   const SpecialTokenNames& special) {
  try {
    return std::make_shared<HfTokenizer>(read_pipeline(root), special);
  } catch (const Error& error) {
    throw Error(concat(name, ": ", error.what()));
  }
}

std::shared_ptr<const Tokenizer> read_hf_tokenizer(std::string_view text, const std::string& name,
                                                   const SpecialTokenNames& special) {
  return make_hf_tokenizer(parse_tokenizer_json(text, name), name, special);
}

}  // namespace bloomery

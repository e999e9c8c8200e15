#include "tokenizer/hf/hf_tokenizer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/json_fields.h"
#include "tokenizer/byte_piece.h"
#include "tokenizer/hf/bert_normalizer.h"
#include "tokenizer/hf/model_tables.h"
#include "tokenizer/hf/pipeline.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

class HfTokenizer : public Tokenizer {
 public:
  HfTokenizer(hf::Pipeline pipeline, const SpecialTokenNames& names)
      : pipeline_(std::move(pipeline)) {
    name_special(names);
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options) const override {
    return std::make_unique<hf::PipelineEncoder>(pipeline_, options);
  }

  std::string decode(std::span<const TokenId> ids) const override {
    if (pipeline_.engine() != nullptr && pipeline_.decoder != nullptr &&
        pipeline_.decoder->is_byte_level()) {
      return decode_bytes(*pipeline_.engine(), ids);
    }
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const TokenId id : ids) {
      tokens.emplace_back(spelling(id));
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
    return std::max<std::int64_t>(pipeline_.model->end_id(), pipeline_.added->end_id());
  }

  std::string piece(TokenId id) const override {
    if (const hf::AddedToken* added = pipeline_.added->find(id)) return added->content;
    return pipeline_.model->spelling(id).value_or("");
  }

  std::optional<TokenId> find(std::string_view piece) const override {
    if (const hf::AddedToken* added = pipeline_.added->find(piece)) return added->id;
    return pipeline_.model->find(piece);
  }

  std::string surface(TokenId id) const override {
    if (id == special_.unk) return {};
    if (const hf::AddedToken* added = pipeline_.added->find(id)) return added->content;
    const std::string piece = pipeline_.model->spelling(id).value_or("");
    if (const ByteBpe* engine = pipeline_.engine()) {
      const auto bytes = engine->tokens().piece(id);
      return bytes ? std::string(*bytes) : hf::byte_level_bytes(piece);
    }
    if (pipeline_.decoder != nullptr && pipeline_.decoder->is_byte_level()) {
      return hf::byte_level_bytes(piece);
    }
    return surface_of_piece(piece);
  }

  bool is_special(TokenId id) const override {
    const hf::AddedToken* added = pipeline_.added->find(id);
    return added != nullptr && added->special;
  }

  const SpecialTokens& special() const override { return special_; }

 private:
  // What the decoder gets for an id: the spelling under which the token is looked for.
  std::string spelling(TokenId id) const {
    if (const hf::AddedToken* added = pipeline_.added->find(id)) return added->pattern;
    std::optional<std::string> piece = pipeline_.model->spelling(id);
    check(piece.has_value(), "token id ", id, " is not in the vocabulary of ", vocab_size(),
          " tokens");
    return *std::move(piece);
  }

  std::string decode_bytes(const ByteBpe& engine, std::span<const TokenId> ids) const {
    std::string text;
    for (const TokenId id : ids) {
      const hf::AddedToken* added = pipeline_.added->find(id);
      const auto bytes = added == nullptr ? engine.tokens().piece(id) : std::nullopt;
      text += bytes ? *bytes : hf::byte_level_bytes(spelling(id));
    }
    return is_utf8(text) ? text : repair_utf8(text);
  }

  void name_special(const SpecialTokenNames& names) {
    const auto find_any = [&](const std::string& given,
                              std::initializer_list<const char*> usual) -> std::optional<TokenId> {
      if (!given.empty()) return find(given);
      if (!names.usual) return std::nullopt;
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
    if (names.has_end) special_.eod = special_.eos ? special_.eos : special_.sep;
  }

  hf::Pipeline pipeline_;
  SpecialTokens special_;
};

// BERT's options when normalizer and pre-tokenizer are both BERT's.
std::optional<BertTextOptions> find_bert(const JsonFields& fields) {
  const auto normalizer = fields.find<JsonFields>("normalizer");
  const auto pre_tokenizer = fields.find<JsonFields>("pre_tokenizer");
  const auto is = [](const std::optional<JsonFields>& object, const char* type) {
    return object && object->get<std::string>("type") == type;
  };
  return is(normalizer, "BertNormalizer") && is(pre_tokenizer, "BertPreTokenizer")
             ? std::optional(hf::read_bert_options(*normalizer))
             : std::nullopt;
}

hf::Pipeline read_pipeline(const JsonFields& fields, hf::ModelTables& tables) {
  hf::Pipeline pipeline;
  check(fields.kind("model") == JsonFields::Kind::object,
        "not a tokenizer.json: it has no object 'model'. A vocab.json needs its merges too: "
        "--tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt");
  if (const auto object = fields.find<JsonFields>("normalizer")) {
    pipeline.normalizer = hf::read_normalizer(*object);
  }
  if (const auto object = fields.find<JsonFields>("pre_tokenizer")) {
    pipeline.pre_tokenizers = hf::read_pre_tokenizers(*object);
  }
  pipeline.model =
      hf::read_model(fields.get<JsonFields>("model"), tables, pipeline.pre_tokenizers.leave_bytes);
  pipeline.bert = find_bert(fields);
  if (const auto object = fields.find<JsonFields>("post_processor")) {
    pipeline.post_processor = hf::read_post_processor(*object);
  }
  if (const auto object = fields.find<JsonFields>("decoder")) {
    pipeline.decoder = hf::read_decoder(*object);
  }
  using Objects = std::vector<JsonFields>;
  pipeline.added = std::make_unique<hf::AddedTokens>(
      fields.find<Objects>("added_tokens").value_or(Objects()), *pipeline.model,
      pipeline.normalizer.get(), tables.added_ids);
  return pipeline;
}

}  // namespace

std::shared_ptr<const Tokenizer> make_hf_tokenizer(const JsonFields& settings,
                                                   hf::ModelTables& tables, const std::string& name,
                                                   const SpecialTokenNames& special) {
  try {
    return std::make_shared<HfTokenizer>(read_pipeline(settings.named("tokenizer.json"), tables),
                                         special);
  } catch (const Error& error) {
    throw Error(concat(name, ": ", error.what()));
  }
}

std::shared_ptr<const Tokenizer> read_hf_tokenizer(std::string_view text, const std::string& name,
                                                   const SpecialTokenNames& special) {
  hf::ModelTables tables;
  const JsonFields settings = JsonFields::of(hf::read_tokenizer_json(text, name, tables), name);
  return make_hf_tokenizer(settings, tables, name, special);
}

}  // namespace bloomery

#include "serve/served_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/file.h"
#include "serve/api_error.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/byte_piece.h"

namespace bloomery {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

std::optional<Prompt> find_chat(LoadedModel& model, const std::string& file) {
  if (!file.empty()) {
    return Prompt(read_file(file), file, true, model.tokenizer());
  }
  for (const std::filesystem::path& folder : model.text_folders()) {
    if (const auto source = find_chat_template(folder)) {
      return Prompt(*source, "the chat template of " + folder.string(), true, model.tokenizer());
    }
  }
  return std::nullopt;
}

// Of a short text that the tokenizer takes: one of numbers takes no letters.
std::vector<TokenId> anchor_tokens(const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  try {
    tokenizer.make_encoder()->encode("a", ids);
  } catch (const Error&) {
    tokenizer.make_encoder()->encode("0", ids);
  }
  return ids;
}

// That a vocabulary with byte fallback, or of bytes, spells.
std::optional<std::string> bytes_of_piece(const std::string& piece) {
  if (const auto byte = byte_of_piece(piece)) {
    return std::string(1, static_cast<char>(*byte));
  }
  return unspell_bytes(piece);
}

std::string shown_bytes(std::string_view bytes) {
  std::string text = "bytes:";
  for (const char c : bytes) {
    text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace

ServedModel::ServedModel(LoadedModel& model, std::string name, const std::string& chat_template)
    : name_(std::move(name)),
      tokenizer_(model.tokenizer()),
      ends_(model.eos_ids()),
      end_of_document_(model.end_of_document()),
      vocabulary_(model.options().vocabulary.size),
      encode_options_(model.encode_options()),
      separate_documents_(model.has_separate_documents()),
      chat_(find_chat(model, chat_template)) {
  for (std::int64_t id = 0; id < tokenizer_.vocab_size(); ++id) {
    longest_token_ =
        std::max(longest_token_, 1 + tokenizer_.piece(static_cast<TokenId>(id)).size());
  }
  if (const auto ids = anchor_tokens(tokenizer_); !ids.empty()) {
    anchor_ = ids.back();
    anchor_text_ = tokenizer_.decode({&*anchor_, 1});
  }
}

std::string ServedModel::plain_token_text(TokenId token) const {
  if (token < 0 || token >= tokenizer_.vocab_size()) {
    return "";
  }
  if (anchor_) {
    const TokenId pair[] = {*anchor_, token};
    const std::string text = tokenizer_.decode(pair);
    if (text.starts_with(anchor_text_)) {
      return text.substr(anchor_text_.size());
    }
  }
  return tokenizer_.decode({&token, 1});
}

const ServedModel::TokenForm& ServedModel::token_form(TokenId token) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = forms_.find(token); found != forms_.end()) {
      return found->second;
    }
  }
  TokenForm form;
  form.text = form.bytes = plain_token_text(token);
  if (form.text.find(kReplacement) != std::string::npos) {
    const std::string piece = tokenizer_.piece(token);
    const auto bytes = bytes_of_piece(piece);
    form.bytes = bytes.value_or(piece);
    form.text = bytes ? shown_bytes(*bytes) : piece;
  }
  const std::lock_guard lock(mutex_);
  return forms_.emplace(token, std::move(form)).first->second;
}

PromptEncoder::PromptEncoder(const ServedModel& model, std::int64_t capacity)
    : model_(model),
      capacity_(capacity),
      whole_(model.tokenizer().make_encoder(model.encode_options())),
      plain_(
          model.tokenizer().make_encoder({.parse_special = model.encode_options().parse_special})),
      marked_(model.tokenizer(), false) {}

void PromptEncoder::require_size(std::string_view text, const char* field) const {
  if (text.size() / model_.longest_token() > static_cast<std::size_t>(capacity_)) {
    throw ApiError(
        400,
        concat("this model's maximum context length is ", capacity_, " tokens, but the prompt has ",
               text.size(), " bytes, more than those can hold: shorten the prompt"),
        field, "context_length_exceeded");
  }
}

std::vector<TokenId> PromptEncoder::encode(const TextPrompt& prompt, bool add_special_tokens) {
  std::vector<TokenId> ids = prompt.ids;
  if (ids.empty()) {
    require_size(prompt.text, "prompt");
    (add_special_tokens ? whole_ : plain_)->encode(prompt.text, ids);
  }
  if (ids.empty()) {
    if (!model_.end_of_document()) {
      throw ApiError(400, "prompt is empty, and the model has no token to start a text from",
                     "prompt");
    }
    ids.push_back(*model_.end_of_document());
  }
  for (const TokenId id : ids) {
    if (id < 0 || id >= model_.vocabulary()) {
      throw ApiError(400,
                     concat("Token id ", id, " is out of range: the vocabulary has ",
                            model_.vocabulary(), " tokens"),
                     "prompt");
    }
  }
  return ids;
}

std::vector<TokenId> PromptEncoder::encode_chat(const std::string& messages,
                                                const std::string& tools) {
  if (model_.chat() == nullptr) {
    throw ApiError(400,
                   "the model has no chat template: use /v1/completions, or start the server with "
                   "--chat-template FILE",
                   "messages");
  }
  std::vector<TokenId> ids;
  try {
    const jinja::Text text = model_.chat()->ask(messages, tools);
    require_size(text.bytes(), "messages");
    ids = marked_.encode(text).ids;
  } catch (const ApiError&) {
    throw;
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "messages");
  }
  return encode({"", std::move(ids)}, false);
}

}  // namespace bloomery

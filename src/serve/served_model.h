// What a server knows of its model beside the weights: its name, and how texts become tokens and
// tokens texts. Shared by threads.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "chat/encode.h"
#include "chat/prompt.h"
#include "generate/loaded_model.h"
#include "serve/text_request.h"

namespace bloomery {

class ServedModel {
 public:
  // `chat_template`: a file, instead of the model's own; empty: its own, if it has one. The model
  // must outlive this object.
  ServedModel(LoadedModel& model, std::string name, const std::string& chat_template);

  const std::string& name() const { return name_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const std::vector<TokenId>& eos_ids() const { return ends_; }  // that end a text
  std::optional<TokenId> end_of_document() const { return end_of_document_; }
  std::int64_t vocabulary() const { return vocabulary_; }
  // Whether what follows the prompt does not see it: it ends a document, and the model was trained
  // with documents apart.
  bool forgets(const std::vector<TokenId>& prompt) const {
    return separate_documents_ && end_of_document_ == prompt.back();
  }
  const EncodeOptions& encode_options() const { return encode_options_; }  // of texts
  // No token stands for more bytes of a text, but one for what the vocabulary does not know.
  std::size_t longest_token() const { return longest_token_; }
  const Prompt* chat() const { return chat_ ? &*chat_ : nullptr; }  // null: it has no template

  // A token's text in the middle of others; where it is no whole characters, its bytes as OpenAI
  // writes them ("bytes:\xe2\x82"), so that different tokens have different texts.
  const std::string& token_text(TokenId token) const { return token_form(token).text; }
  const std::string& token_bytes(TokenId token) const { return token_form(token).bytes; }
  // U+FFFD where it is no whole characters.
  std::string plain_token_text(TokenId token) const;

 private:
  struct TokenForm {
    std::string text, bytes;
  };
  const TokenForm& token_form(TokenId token) const;

  std::string name_;
  const Tokenizer& tokenizer_;
  std::vector<TokenId> ends_;
  std::optional<TokenId> end_of_document_;
  std::int64_t vocabulary_;
  EncodeOptions encode_options_;
  bool separate_documents_;
  std::size_t longest_token_ = 1;
  std::optional<Prompt> chat_;
  std::optional<TokenId> anchor_;  // a token with a plain text
  std::string anchor_text_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<TokenId, TokenForm> forms_;
};

// Prompts to tokens, for one thread. ApiErrors say what is wrong with them.
class PromptEncoder {
 public:
  // A text that `capacity` tokens cannot hold is refused before it is read: megabytes take seconds.
  PromptEncoder(const ServedModel& model, std::int64_t capacity);

  // An empty text is the token between documents.
  std::vector<TokenId> encode(const TextPrompt& prompt, bool add_special_tokens);
  // A conversation that asks for an answer.
  std::vector<TokenId> encode_chat(const std::string& messages, const std::string& tools);

 private:
  void require_size(std::string_view text, const char* field) const;

  const ServedModel& model_;
  const std::int64_t capacity_;
  std::unique_ptr<Encoder> whole_, plain_;
  MarkedEncoder marked_;
};

}  // namespace bloomery

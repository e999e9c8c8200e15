// A document's text to the tokens of the file, as Megatron's tool does it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "corpus/indexed_corpus.h"
#include "text/sentences/sentence_splitter.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

struct DocumentOptions {
  bool split_sentences = false;
  bool keep_newlines = false;  // white space between sentences belongs to the one before it
  bool append_eod = false;
  EncodeOptions encode;
};

// Of one thread; refers to the tokenizer.
class DocumentEncoder {
 public:
  DocumentEncoder(const Tokenizer& tokenizer, const DocumentOptions& options, TokenType type);

  // Appends one document: one sequence, or one for each sentence that gives tokens; the end of
  // document goes to the last. False, with nothing appended, when the text gives no token.
  bool encode(std::string_view text, EncodedBatch& batch);

 private:
  void encode_sentences(std::string_view text);
  void append_tokens(EncodedBatch& batch) const;

  const DocumentOptions options_;
  const TokenType type_;
  TokenId eod_ = 0;
  std::unique_ptr<Encoder> encoder_;
  std::vector<TokenId> ids_;       // of the document
  std::vector<std::size_t> ends_;  // in ids_, of its sequences
  std::vector<std::string_view> sentences_;
};

}  // namespace bloomery

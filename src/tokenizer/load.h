// Which tokenizer: by path, recognised by content, or by Megatron's type and files.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tokenizer/tokenizer.h"

namespace bloomery {

class OptionTable;

struct TokenizerOptions {
  // A tokenizer.json, a folder of Hugging Face files, a SentencePiece model, a tiktoken rank file
  // or a vocab.txt.
  std::string path;
  // Megatron's way: GPT2BPETokenizer, BertWordPieceLowerCase, BertWordPieceCase,
  // SentencePieceTokenizer, GPTSentencePieceTokenizer, Llama2Tokenizer, HFTokenizer, TikTokenizer,
  // NullTokenizer.
  std::string type;
  std::string vocab_file, merge_file, tokenizer_model;
  std::int64_t vocab_size = 0;       // of NullTokenizer
  std::int64_t vocab_extra_ids = 0;  // <extra_id_0> ... of BERT and SentencePiece types
  std::string pattern;  // of tiktoken files whose count of ranks names none: cl100k, o200k, ...
};

void describe(OptionTable& table, TokenizerOptions& options);

// Whether the options name a tokenizer, or a part of one, at all.
bool names_tokenizer(const TokenizerOptions& options);

std::shared_ptr<const Tokenizer> load_tokenizer(const TokenizerOptions& options);

// How a text that a model continues or rates becomes tokens, whatever the command. Of a path as by
// transformers: the tokenizer's own tokens around the text, special tokens that it spells. Of
// Megatron's types as there: HFTokenizer and Llama2Tokenizer alone add tokens, GPT-2's takes
// special tokens in a text for text.
EncodeOptions text_encoding(const TokenizerOptions& options);

}  // namespace bloomery

// SentencePiece models as tokenizers.
#pragma once

#include <filesystem>
#include <memory>

#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

enum class SentencePieceKind {
  // The model as it is; the end of a document is the model's eos. Also Megatron's
  // GPTSentencePieceTokenizer and Llama2Tokenizer.
  plain,
  // Megatron's SentencePieceTokenizer: <CLS>, <SEP>, <EOD>, <MASK>, padding, bos and eos (<PAD>,
  // <BOS> and <EOS> where the model has none) and <extra_id_0> ... are added where the model does
  // not have them. Unlike the control pieces of a plain model they are recognised in the text, and
  // <EOD> ends a document.
  megatron,
};

// What the files of Hugging Face beside a model say of it. Then encoding is that of transformers:
// tokens with a part to play and added ones are recognised in a text.
struct SentencePieceNotes {
  struct Added {
    std::string text;
    bool is_special = true;
  };
  SpecialTokenNames names;
  std::vector<Added> added;  // tokens; those that the model does not have follow its pieces
  std::optional<bool> add_bos, add_eos;  // add_bos_token, add_eos_token
  bool legacy = false;                   // a space before the text behind a special token, too
};

// Encoding is SentencePiece's. Control pieces written in the text are text, unless
// EncodeOptions::parse_control. With EncodeOptions::add_special_tokens come bos before and eos
// after the text where the model has them, eos only for unigram models, as the families of models
// built on either do: Llama adds <s>, T5 </s>, ALBERT [CLS] and [SEP].
//
// Decoding is SentencePiece's too, the space that encoding puts first taken away, except that
// control pieces are written as they are spelled. For SentencePieceKind::megatron each added token
// stands between two spaces, and the text between two of them is decoded by itself.
std::shared_ptr<const Tokenizer> load_sentencepiece(const std::filesystem::path& path,
                                                    SentencePieceKind kind,
                                                    std::int64_t extra_ids = 0);

// The tokenizer.model, or its like, of a folder of Hugging Face files.
std::shared_ptr<const Tokenizer> load_sentencepiece(const std::filesystem::path& path,
                                                    const SentencePieceNotes& notes);

// The same from the bytes of a file; `name` is for messages.
std::shared_ptr<const Tokenizer> parse_sentencepiece_tokenizer(std::string_view bytes,
                                                               std::string_view name,
                                                               SentencePieceKind kind,
                                                               std::int64_t extra_ids = 0);

}  // namespace bloomery

#include "evaluate/perplexity.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "corpus/corpus_name.h"
#include "corpus/indexed_corpus.h"
#include "evaluate/detokenize.h"
#include "evaluate/scorer.h"
#include "evaluate/text_input.h"
#include "text/input/python_text.h"

namespace bloomery {
namespace {

constexpr std::int64_t kWikitextStride = 32;  // Megatron's default
constexpr double kLargestExponent = 20;       // and its bound for what it prints

void add_windows(Scorer& scorer, std::span<const TokenId> tokens, std::int64_t seq_length,
                 std::int64_t stride) {
  for (const Window& window :
       windows_over(static_cast<std::int64_t>(tokens.size()), seq_length, stride)) {
    scorer.add(tokens.subspan(static_cast<std::size_t>(window.begin),
                              static_cast<std::size_t>(window.length) + 1),
               window.scored);
  }
}

// The documents of any kind of data, one after another.
class DocumentScorer {
 public:
  DocumentScorer(LoadedModel& model, const PerplexityOptions& options,
                 const ScoringProgress& progress)
      : model_(model),
        options_(options),
        seq_length_(checked_seq_length(model.options(), options.seq_length)),
        scorer_(model, options.micro_batch_size, progress) {
    if (options.prepend_eod || options.append_eod) {
      const auto end = model.end_of_document();
      check(end.has_value(), "the model's tokenizer names no end-of-document token");
      eod_ = *end;
    }
  }

  void add_text(std::string_view text, const std::string& place) {
    if (!encoder_) {
      encoder_ = model_.tokenizer().make_encoder(model_.encode_options());
    }
    start();
    encoder_->encode(text, tokens_);
    if (options_.append_eod) {
      tokens_.push_back(eod_);
    }
    words_ += count_words(text);
    finish(place);
  }

  void add_corpus(const std::string& prefix) {
    const IndexedCorpus corpus(prefix);
    const Tokenizer* tokenizer = model_.has_tokenizer() ? &model_.tokenizer() : nullptr;
    if (tokenizer != nullptr && !options_.allow_tokenizer_mismatch) {
      require_corpus_tokenizer({prefix}, *tokenizer, "that of the model");
    }
    words_known_ = tokenizer != nullptr;
    scorer_.expect(corpus.num_tokens());
    for (std::int64_t document = 0; document < corpus.num_documents(); ++document) {
      start();
      const std::size_t first = tokens_.size();
      append_document(corpus, document);
      const auto stored = std::span(tokens_).subspan(first);
      const std::string place = concat(prefix, ": document ", document);
      check_tokens(stored, model_.options().vocabulary.size, place);
      if (tokenizer != nullptr) {
        words_ += count_words(decoded(*tokenizer, stored));
      }
      finish(place);
    }
  }

  PerplexityResult result(const std::string& data) {
    PerplexityResult result{.nll = scorer_.negative_log_likelihood(),
                            .tokens = scorer_.num_scored()};
    check(result.tokens > 0, data, " holds no document of two tokens: nothing can be scored");
    if (words_known_) {
      result.words = words_;
    }
    return result;
  }

 private:
  void start() {
    tokens_.clear();
    if (options_.prepend_eod) {
      tokens_.push_back(eod_);
    }
  }

  void append_document(const IndexedCorpus& corpus, std::int64_t document) {
    for (std::int64_t sequence = corpus.first_sequence(document);
         sequence < corpus.first_sequence(document + 1); ++sequence) {
      const std::size_t before = tokens_.size();
      tokens_.resize(before + static_cast<std::size_t>(corpus.length(sequence)));
      corpus.read(sequence, 0, std::span(tokens_).subspan(before));
    }
  }

  // The text of a document, without the token that ends it.
  static std::string decoded(const Tokenizer& tokenizer, std::span<const TokenId> tokens) {
    const auto& special = tokenizer.special();
    const auto end = special.eod ? special.eod : special.eos;
    if (end && !tokens.empty() && tokens.back() == *end) {
      tokens = tokens.first(tokens.size() - 1);
    }
    return tokenizer.decode(tokens);
  }

  void finish(const std::string& place) {
    check_tokens(tokens_, model_.options().vocabulary.size, place);
    add_windows(scorer_, tokens_, seq_length_, options_.overlapping_eval.value_or(seq_length_));
  }

  LoadedModel& model_;
  const PerplexityOptions& options_;
  std::int64_t seq_length_;
  Scorer scorer_;
  TokenId eod_ = 0;
  std::unique_ptr<Encoder> encoder_;
  std::vector<TokenId> tokens_;  // of the document at hand
  std::int64_t words_ = 0;
  bool words_known_ = true;
};

}  // namespace

double PerplexityResult::ppl() const { return std::exp(nll / static_cast<double>(tokens)); }

PerplexityResult evaluate_perplexity(LoadedModel& model, const PerplexityOptions& options,
                                     const ScoringProgress& progress) {
  DocumentScorer scorer(model, options, progress);
  if (const std::string prefix = corpus_prefix(options.data); !prefix.empty()) {
    check(!options.append_eod, "--append-eod is for texts; ", prefix,
          " has its end-of-document tokens, or none, from preprocessing");
    scorer.add_corpus(prefix);
    return scorer.result(options.data);
  }
  check(std::filesystem::exists(options.data), options.data, " does not exist",
        corpus_suggestion(options.data));
  if (is_json_lines(options.data)) {
    for_each_json_text(options.data, options.json_key,
                       [&](std::string_view text, std::int64_t line) {
                         scorer.add_text(text, concat(options.data, ": line ", line));
                       });
  } else {
    scorer.add_text(read_text(options.data), options.data);
  }
  return scorer.result(options.data);
}

double WikitextResult::ppl() const { return std::exp(std::min(kLargestExponent, loss)); }
double WikitextResult::adjusted_ppl() const {
  return std::exp(std::min(kLargestExponent, loss * token_ratio()));
}
double WikitextResult::token_ratio() const {
  return static_cast<double>(tokens - 1) / static_cast<double>(original_tokens - 1);
}

WikitextResult evaluate_wikitext(LoadedModel& model, const PerplexityOptions& options,
                                 const ScoringProgress& progress) {
  const std::string text = read_text(options.data);
  WikitextResult result{.original_tokens = count_pieces(strip(text))};
  std::vector<TokenId> tokens;
  model.tokenizer()
      .make_encoder(model.encode_options())
      ->encode(detokenize(text, options.data), tokens);
  check_tokens(tokens, model.options().vocabulary.size, options.data);
  result.tokens = static_cast<std::int64_t>(tokens.size());
  check(result.tokens >= 2 && result.original_tokens >= 2, options.data,
        ": too short to be scored: ", result.tokens, " tokens, ", result.original_tokens, " words");
  Scorer scorer(model, options.micro_batch_size, progress);
  scorer.expect(result.tokens - 1);
  const std::int64_t seq_length = checked_seq_length(model.options(), options.seq_length);
  add_windows(scorer, tokens, seq_length,
              options.overlapping_eval.value_or(std::min(kWikitextStride, seq_length)));
  result.loss = scorer.negative_log_likelihood() / static_cast<double>(result.tokens - 1);
  return result;
}

}  // namespace bloomery

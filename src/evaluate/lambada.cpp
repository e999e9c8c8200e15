#include "evaluate/lambada.h"

#include <algorithm>

#include "evaluate/scorer.h"
#include "evaluate/text_input.h"
#include "text/input/python_text.h"

namespace bloomery {
namespace {

constexpr std::int64_t kLogitBytes = std::int64_t{512} << 20;  // of a micro-batch, about

// Whether the labels of one passage are predicted; the logits of its tokens start at `first_row`.
class PassageCheck {
 public:
  PassageCheck(LoadedModel& model, const Tensor& logits)
      : model_(model), logits_(logits), row_(static_cast<std::size_t>(logits.shape().back())) {}

  bool correct(const Passage& passage, std::int64_t first_row) {
    const auto count = static_cast<std::int64_t>(passage.tokens.size());
    const std::int64_t first_label = std::max<std::int64_t>(1, count - passage.num_labels);
    for (std::int64_t place = first_label; place < count; ++place) {
      const TokenId wanted = passage.tokens[static_cast<std::size_t>(place)];
      if (most_probable(first_row + place - 1) != wanted) {
        return false;
      }
    }
    return true;
  }

 private:
  TokenId most_probable(std::int64_t row) {
    read_row(row);
    const auto real = row_.begin() + model_.options().vocabulary.size;
    return static_cast<TokenId>(std::max_element(row_.begin(), real) - row_.begin());
  }

  void read_row(std::int64_t row) {
    const Tensor part = logits_.slice(row, row + 1);
    dispatch_floating(part.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::vector<T> values = part.to_host<T>(model_.stream());
      std::ranges::transform(values, row_.begin(), [](T v) { return static_cast<float>(v); });
    });
  }

  LoadedModel& model_;
  const Tensor& logits_;
  std::vector<float> row_;
};

std::int64_t count_correct(LoadedModel& model, std::span<const Passage> passages) {
  std::vector<std::span<const TokenId>> inputs;
  for (const Passage& passage : passages) {
    inputs.push_back(std::span(passage.tokens).first(passage.tokens.size() - 1));
  }
  const Batch batch = upload_tokens(model.stream(), inputs);
  if (batch.length == 0) {
    return batch.num_sequences;  // nothing is asked for
  }
  const Tensor logits = model.logits(batch);
  PassageCheck check(model, logits);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < passages.size(); ++i) {
    count += check.correct(passages[i], static_cast<std::int64_t>(i) * batch.length) ? 1 : 0;
  }
  return count;
}

std::vector<Passage> read_passages(LoadedModel& model, const LambadaOptions& options,
                                   std::int64_t& cut) {
  const std::int64_t longest = checked_seq_length(model.options(), options.seq_length) + 1;
  EncodeOptions encode = model.encode_options();
  const auto encoder = model.tokenizer().make_encoder(encode);
  encode.add_special_tokens = false;
  const auto word_encoder = model.tokenizer().make_encoder(encode);
  std::vector<Passage> passages;
  for_each_json_text(options.data, "text", [&](std::string_view text, std::int64_t line) {
    Passage passage = make_passage(*encoder, *word_encoder, text, options.strict);
    const std::string place = concat(options.data, ": line ", line);
    check(passage.num_labels > 0, place, ": the text has nothing to predict");
    check_tokens(passage.tokens, model.options().vocabulary.size, place);
    const auto count = static_cast<std::int64_t>(passage.tokens.size());
    if (count > longest) {
      passage.tokens.erase(passage.tokens.begin(), passage.tokens.end() - longest);
      ++cut;
    }
    passages.push_back(std::move(passage));
  });
  return passages;
}

}  // namespace

Passage make_passage(Encoder& encoder, Encoder& word_encoder, std::string_view text, bool strict) {
  Passage passage;
  if (!strict) {
    encoder.encode(text, passage.tokens);
    passage.num_labels = text.empty() || passage.tokens.empty() ? 0 : 1;
    return passage;
  }
  const std::string_view word = last_word(text);
  if (word.empty()) {
    return passage;
  }
  encoder.encode(strip(text.substr(0, text.rfind(word))), passage.tokens);
  const std::size_t before = passage.tokens.size();
  word_encoder.encode(concat(" ", word), passage.tokens);
  passage.num_labels = static_cast<std::int64_t>(passage.tokens.size() - before);
  return passage;
}

LambadaResult evaluate_lambada(LoadedModel& model, const LambadaOptions& options,
                               const ScoringProgress& progress) {
  LambadaResult result;
  std::vector<Passage> passages = read_passages(model, options, result.cut);
  check(!passages.empty(), options.data, " holds no passage");
  result.total = static_cast<std::int64_t>(passages.size());
  std::ranges::stable_sort(passages, std::greater(),
                           [](const Passage& passage) { return passage.tokens.size(); });
  const std::int64_t token_bytes = 4 * model.options().vocabulary.size;
  std::int64_t correct = 0, number = 0;  // of this rank, and of the micro-batch
  for (std::size_t begin = 0; begin < passages.size(); ++number) {
    const auto length = static_cast<std::int64_t>(passages[begin].tokens.size());
    const std::int64_t fitting =
        std::clamp<std::int64_t>(kLogitBytes / (length * token_bytes), 1, options.micro_batch_size);
    const std::size_t count = std::min(passages.size() - begin, static_cast<std::size_t>(fitting));
    if (is_own_batch(model.mesh(), number)) {
      correct += count_correct(model, std::span(passages).subspan(begin, count));
    }
    begin += count;
    if (progress) {
      progress(static_cast<std::int64_t>(begin), result.total);
    }
  }
  const std::vector<double> mine = {static_cast<double>(correct)};
  for (const auto& of_rank : model.mesh().axis(Axis::data).host().gather_numbers("correct", mine)) {
    result.correct += static_cast<std::int64_t>(of_rank.at(0));
  }
  return result;
}

}  // namespace bloomery

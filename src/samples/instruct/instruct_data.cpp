#include "samples/instruct/instruct_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/number_text.h"
#include "samples/instruct/packing.h"
#include "text/input/byte_source.h"
#include "text/input/input_files.h"

namespace bloomery {
InstructData::InstructData(const InstructOptions& options, const DataOptions& data,
                           const Tokenizer& tokenizer, const std::string& folder, std::int64_t seed,
                           const Log& log)
    : options_(options), length_(data.seq_length), seed_(seed) {
  const SpecialTokens& special = tokenizer.special();
  padding_ = special.pad ? *special.pad : special.eos.value_or(0);
  const RecordTemplate how = choose_template(options, folder);
  if (how.is_new) new_chat_template_ = how.source;
  if (how.is_built_in) {
    report_.push_back(
        "the model has no chat template: the built-in one is used (### User: ... ### Assistant: "
        "...) and stored with it; --chat-template FILE or --prompt-template FILE gives another");
  }
  const auto records_of = [&](const std::vector<std::string>& paths) {
    return read({options, how, tokenizer}, paths, data.data_cache_path, log);
  };
  if (data.has_separate_paths()) {
    for (const Split split : kSplits) {
      if (data.paths(split).empty()) continue;
      const Records records = records_of(data.paths(split));
      add(split, records, 0, records->size());
    }
    return;
  }
  const Records all = records_of(data.data_path);
  const std::int64_t each = options.pairs ? 2 : 1;
  const auto ranges = split_ranges(data.split, all->size() / each);
  for (const Split split : kSplits) {
    const SplitRange& range = ranges[static_cast<std::size_t>(split)];
    add(split, all, range.first * each, range.last * each);
  }
}

InstructData::Records InstructData::read(const RecordEncoding& encoding,
                                         const std::vector<std::string>& paths,
                                         const std::string& cache_folder, const Log& log) {
  const std::vector<std::string> files = input_files(paths, "--data-path");
  Records records = encoded_records(encoding, files, cache_folder, log);
  const LeftOutRecords& left_out = records->left_out();
  if (left_out.count == 0) return records;
  std::string places;
  for (const LeftOutRecords::Place& place : left_out.first) {
    places += concat(places.empty() ? "" : "; ", shown_name(files[place.file]), ", ", place.name);
  }
  check(records->size() > 0, "no record is left, because answers are not found: ", places, ": ",
        left_out.reason);
  report_.push_back(concat(
      counted(left_out.count, "record"), " skipped, because the answers are not found (", places,
      left_out.count > std::ssize(left_out.first) ? "; ..." : "", "): ", left_out.reason));
  return records;
}

// The examples of a split that are used, cut to a length, and what is to be said of them.
class InstructData::Choice {
 public:
  Choice(std::int64_t length, bool pairs) : length_(length), pairs_(pairs) {}

  void take(std::int64_t number, std::span<const TokenId> ids,
            std::span<const std::uint8_t> loss_mask) {
    const std::size_t most = std::min(ids.size(), static_cast<std::size_t>(length_));
    Example example{number,
                    {{ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(most)},
                     {loss_mask.begin(), loss_mask.begin() + static_cast<std::ptrdiff_t>(most)}},
                    most < ids.size()};
    if (!pairs_) return keep(example);
    if (number % 2 == 0) {
      chosen_ = std::move(example);
    } else if (chosen_.num_loss_tokens() > 0 && example.num_loss_tokens() > 0) {
      keep(chosen_);
      keep(example);
    } else {  // nothing can be said of an answer that is cut off
      ++lost_pairs_;
    }
  }

  const std::vector<std::int64_t>& examples() const { return examples_; }
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  const Counts& counts() const { return counts_; }
  std::int64_t lost_pairs() const { return lost_pairs_; }
  std::string hash() const { return hash_text(hash_.value()); }

 private:
  struct Example {
    std::int64_t number = 0;
    InstructExample text;
    bool is_cut = false;

    // A first token has nothing before it.
    std::int64_t num_loss_tokens() const {
      const std::vector<std::uint8_t>& loss_mask = text.loss_mask;
      return std::count(loss_mask.begin() + (loss_mask.empty() ? 0 : 1), loss_mask.end(), 1);
    }
  };

  void keep(const Example& example) {
    const std::int64_t loss_tokens = example.num_loss_tokens();
    examples_.push_back(example.number);
    lengths_.push_back(std::ssize(example.text.ids));
    counts_.tokens += lengths_.back();
    counts_.loss_tokens += loss_tokens;
    counts_.cut += example.is_cut ? 1 : 0;
    counts_.empty += loss_tokens == 0 ? 1 : 0;
    hash_.add(std::as_bytes(std::span(example.text.ids)));
    hash_.add(std::as_bytes(std::span(example.text.loss_mask)));
  }

  std::int64_t length_;
  bool pairs_;
  std::vector<std::int64_t> examples_, lengths_;
  Counts counts_;
  RunningXxh3 hash_;
  Example chosen_;
  std::int64_t lost_pairs_ = 0;
};

void InstructData::add(Split split, const Records& records, std::int64_t first, std::int64_t last) {
  Choice choice(length_, options_.pairs);
  if (first < last) {
    records->for_each(first, last, [&](auto... example) { choice.take(example...); });
  }
  if (choice.lost_pairs() > 0) {
    report_.push_back(
        concat(name(split), ": ", grouped(choice.lost_pairs()),
               " pairs are left out: an answer is empty, or lies behind --seq-length ", length_));
  }
  check(!choice.examples().empty() || split != Split::train || !options_.pairs,
        "no pair is left to train on: give more records, or a larger --seq-length than ", length_);
  if (choice.examples().empty()) return;
  check(choice.counts().loss_tokens > 0 || split != Split::train,
        "no record has a token in the loss: answers are cut off by --seq-length ", length_,
        ", the response template does not occur, or the template marks nothing by {% generation "
        "%}");
  auto samples = std::make_shared<InstructSamples>();
  samples->records = records;
  arrange(choice, *samples);
  if (options_.pairs) {
    references_[static_cast<std::size_t>(split)] = std::make_shared<ReferenceValues>();
  }
  samples->name = concat("instructions ", choice.hash(), " length ", length_, " seed ", seed_,
                         options_.packing ? " packed"
                         : options_.pairs ? " pairs"
                                          : "");
  report(split, *samples, choice.counts());
  splits_[static_cast<std::size_t>(split)] = std::move(samples);
}

void InstructData::arrange(const Choice& choice, InstructSamples& samples) const {
  const std::span<const std::int64_t> examples = choice.examples();
  if (options_.packing) {
    for (std::vector<std::int64_t>& sequence : pack(choice.lengths(), length_)) {
      for (std::int64_t& number : sequence) {
        number = examples[static_cast<std::size_t>(number)];
      }
      samples.add(sequence);
    }
    return;
  }
  const std::size_t each = options_.pairs ? 2 : 1;
  for (std::size_t i = 0; i < examples.size(); i += each) {
    samples.add(examples.subspan(i, each));
  }
}

void InstructData::report(Split split, const InstructSamples& samples, const Counts& counts) {
  const auto [tokens, loss_tokens, cut, empty] = counts;
  const auto count = samples.size() * (options_.pairs ? 2 : 1);
  report_.push_back(
      concat(name(split), ": ",
             counted(static_cast<std::int64_t>(samples.examples.size()),
                     options_.pairs ? "answer" : "record"),
             ", ", counted(tokens, "token"), ", ", grouped(loss_tokens),
             " of them in the loss, in ", counted(count, "sequence"), " of ", length_, " (",
             fixed(100.0 * static_cast<double>(tokens) / static_cast<double>(count * length_), 1),
             " % filled)"));
  if (cut > 0)
    report_.push_back(concat(name(split), ": ", counted(cut, "record"), " cut to ", length_,
                             " tokens: a larger --seq-length keeps records whole"));
  if (empty > 0) {
    report_.push_back(concat(
        name(split), ": ", counted(empty, "record"), " without a token in the loss",
        options_.response_template.empty() ? "" : ": the response template is missing or cut off"));
  }
}

std::int64_t InstructData::size(Split split) const {
  const auto& samples = splits_[static_cast<std::size_t>(split)];
  return samples == nullptr ? 0 : samples->size();
}

std::unique_ptr<Dataset> InstructData::build(Split split, std::int64_t num_samples) const {
  return dataset(split, num_samples, split == Split::train,
                 references_[static_cast<std::size_t>(split)]);
}

std::unique_ptr<Dataset> InstructData::build_in_order(Split split, std::int64_t num_samples) const {
  return dataset(split, num_samples, false, nullptr);
}

std::unique_ptr<Dataset> InstructData::dataset(
    Split split, std::int64_t num_samples, bool shuffle,
    std::shared_ptr<const ReferenceValues> reference) const {
  const auto& samples = splits_[static_cast<std::size_t>(split)];
  if (samples == nullptr) return nullptr;
  return std::make_unique<InstructDataset>(
      samples, num_samples,
      InstructDataset::Options{.length = length_,
                               .padding = padding_,
                               .arrangement = options_.arrangement(),
                               .shuffle = shuffle,
                               .seed = seed_,
                               .reference = std::move(reference)});
}

const std::string& InstructData::description(Split split) const {
  return splits_[static_cast<std::size_t>(split)]->name;
}

void InstructData::set_reference(Split split, std::vector<float> values) const {
  check(static_cast<std::int64_t>(values.size()) == 2 * size(split), "a reference of ",
        values.size(), " texts for ", size(split), " pairs");
  references_[static_cast<std::size_t>(split)]->set(std::move(values));
}

const std::vector<float>* InstructData::reference(Split split) const {
  const auto& reference = references_[static_cast<std::size_t>(split)];
  return reference == nullptr ? nullptr : &reference->values();
}

}  // namespace bloomery

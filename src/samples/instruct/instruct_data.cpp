#include "samples/instruct/instruct_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json_scan.h"
#include "base/number_text.h"
#include "chat/jinja/string_literal.h"
#include "samples/instruct/completion_mask.h"
#include "samples/instruct/packing.h"
#include "samples/instruct/record_files.h"

namespace bloomery {
namespace {

bool is_wanted(const std::string& json, const std::string& only) {
  const std::size_t equals = only.find('=');
  check(equals != std::string::npos, "--only ", only, ": give COLUMN=VALUE");
  check_json_depth(json);
  const auto record = nlohmann::ordered_json::parse(json, nullptr, false);
  const auto column = record.is_object() ? record.find(only.substr(0, equals)) : record.end();
  return column != record.end() && column->is_string() &&
         column->get<std::string>() == only.substr(equals + 1);
}

}  // namespace

ExampleMaker::ExampleMaker(const InstructOptions& options, const Tokenizer& tokenizer,
                           const std::string& folder)
    : options_(options),
      template_(choose_template(options, folder)),
      prompt_(template_.source, template_.name, template_.is_chat, tokenizer),
      encoder_(tokenizer, !prompt_.is_chat()) {
  check(options.instruction_template.empty() || !options.response_template.empty(),
        "--instruction-template needs --response-template");
  response_ = encoder_.encode_plain(jinja::unescape(options.response_template));
  instruction_ = encoder_.encode_plain(jinja::unescape(options.instruction_template));
}

bool ExampleMaker::make(const std::string& json, InstructExample& example) {
  if (!options_.only.empty() && !is_wanted(json, options_.only)) return false;
  const Record record = read_record(json, options_.format);
  check(!record.has_two_answers || prompt_.mentions("chosen"),
        "the record has two answers, 'chosen' and 'rejected', and none to repeat: --dpo learns "
        "which of them is preferred; a --prompt-template FILE with {{ chosen }} learns that one");
  example = encoded(prompt_.render(record, marks_count()));
  return true;
}

bool ExampleMaker::make(const std::string& json, InstructExample& chosen,
                        InstructExample& rejected) {
  if (!options_.only.empty() && !is_wanted(json, options_.only)) return false;
  const PreferenceRecord pair = read_preference(json);
  chosen = encoded(prompt_.render(pair, true, marks_count()));
  rejected = encoded(prompt_.render(pair, false, marks_count()));
  return true;
}

InstructExample ExampleMaker::encoded(const jinja::Text& text) {
  if (marks_count()) {
    MarkedTokens tokens = encoder_.encode(text);
    return {std::move(tokens.ids), std::move(tokens.generated)};
  }
  InstructExample example{encoder_.ids(text), {}};
  if (options_.loss_on == LossOn::all) {
    example.learnt.assign(example.ids.size(), 1);
  } else {
    example.learnt = completion_mask(example.ids, response_, instruction_);
  }
  return example;
}

InstructData::InstructData(const InstructOptions& options, const DataOptions& data,
                           const Tokenizer& tokenizer, const std::string& folder, std::int64_t seed)
    : options_(options), length_(data.seq_length), seed_(seed) {
  const SpecialTokens& special = tokenizer.special();
  padding_ = special.pad ? *special.pad : special.eos.value_or(0);
  ExampleMaker maker(options, tokenizer, folder);
  if (maker.record_template().is_new) new_chat_template_ = maker.record_template().source;
  if (maker.record_template().is_built_in) {
    report_.push_back(
        "the model has no chat template: the built-in one is used (### User: ... ### Assistant: "
        "...) and stored with it; --chat-template FILE or --prompt-template FILE gives another");
  }
  if (data.has_separate_paths()) {
    for (const Split split : kSplits) {
      if (!data.paths(split).empty()) add(split, read(maker, data.paths(split)));
    }
    return;
  }
  Examples all = read(maker, data.data_path);
  const std::int64_t each = options.pairs ? 2 : 1;
  const auto ranges = split_ranges(data.split, static_cast<std::int64_t>(all.size()) / each);
  for (const Split split : kSplits) {
    const SplitRange& range = ranges[static_cast<std::size_t>(split)];
    add(split, {std::make_move_iterator(all.begin() + range.first * each),
                std::make_move_iterator(all.begin() + range.last * each)});
  }
}

InstructData::Examples InstructData::read(ExampleMaker& maker,
                                          const std::vector<std::string>& paths) {
  constexpr std::size_t kShown = 3;
  Examples examples;
  std::vector<std::string> unmaskable;
  std::string reason;
  for (const RecordText& record : read_record_files(paths)) {
    InstructExample example, rejected;
    try {
      if (options_.pairs) {
        if (maker.make(record.json, example, rejected)) {
          examples.push_back(std::move(example));
          examples.push_back(std::move(rejected));
        }
      } else if (maker.make(record.json, example)) {
        examples.push_back(std::move(example));
      }
    } catch (const UnmaskableRecord& error) {
      if (unmaskable.empty()) reason = error.what();
      unmaskable.push_back(record.place);
    } catch (const Error& error) {
      throw Error(concat(record.place, ": ", error.what()));
    }
  }
  if (unmaskable.empty()) return examples;
  std::string places;
  for (std::size_t i = 0; i < std::min(kShown, unmaskable.size()); ++i) {
    places += (i == 0 ? "" : "; ") + unmaskable[i];
  }
  check(!examples.empty(), "no record is left, because answers are not found: ", places, ": ",
        reason);
  report_.push_back(concat(grouped(static_cast<std::int64_t>(unmaskable.size())),
                           " records are left out, whose answers are not found (", places,
                           unmaskable.size() > kShown ? "; ..." : "", "): ", reason));
  return examples;
}

// Nothing can be said of an answer that is cut off.
void InstructData::leave_out_cut_pairs(Split split, Examples& examples) {
  const auto has_answer = [&](const InstructExample& example) {
    const auto end =
        std::min<std::size_t>(example.learnt.size(), static_cast<std::size_t>(length_));
    return end > 1 && std::find(example.learnt.begin() + 1,
                                example.learnt.begin() + static_cast<std::ptrdiff_t>(end),
                                1) != example.learnt.begin() + static_cast<std::ptrdiff_t>(end);
  };
  Examples kept;
  for (std::size_t i = 0; i + 1 < examples.size(); i += 2) {
    if (has_answer(examples[i]) && has_answer(examples[i + 1])) {
      kept.push_back(std::move(examples[i]));
      kept.push_back(std::move(examples[i + 1]));
    }
  }
  if (const std::size_t lost = (examples.size() - kept.size()) / 2; lost > 0) {
    report_.push_back(
        concat(name(split), ": ", grouped(static_cast<std::int64_t>(lost)),
               " pairs are left out: an answer is empty, or lies behind --seq-length ", length_));
  }
  examples = std::move(kept);
}

void InstructData::add(Split split, Examples examples) {
  if (options_.pairs) leave_out_cut_pairs(split, examples);
  check(!examples.empty() || split != Split::train || !options_.pairs,
        "no pair is left to train on: give more records, or a larger --seq-length than ", length_);
  if (examples.empty()) return;
  auto samples = std::make_shared<InstructSamples>();
  std::int64_t tokens = 0, learnt = 0, cut = 0, empty = 0;
  std::vector<std::int64_t> lengths;
  std::string bytes;
  for (InstructExample& example : examples) {
    const auto own = static_cast<std::int64_t>(example.ids.size());
    cut += own > length_ ? 1 : 0;
    example.ids.resize(static_cast<std::size_t>(std::min(own, length_)));
    example.learnt.resize(example.ids.size());
    const auto count = std::count(example.learnt.begin() + (example.learnt.empty() ? 0 : 1),
                                  example.learnt.end(), 1);
    tokens += static_cast<std::int64_t>(example.ids.size());
    learnt += count;
    empty += count == 0 ? 1 : 0;
    lengths.push_back(static_cast<std::int64_t>(example.ids.size()));
    bytes.append(reinterpret_cast<const char*>(example.ids.data()),
                 example.ids.size() * sizeof(TokenId));
    bytes.append(reinterpret_cast<const char*>(example.learnt.data()), example.learnt.size());
  }
  check(learnt > 0 || split != Split::train,
        "no record has a token to learn: answers are cut off by --seq-length ", length_,
        ", the response template does not occur, or the template marks nothing by {% generation "
        "%}");
  samples->examples = std::move(examples);
  if (options_.packing) {
    samples->sequences = pack(lengths, length_);
  } else if (options_.pairs) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(lengths.size()); i += 2)
      samples->sequences.push_back({i, i + 1});
    references_[static_cast<std::size_t>(split)] = std::make_shared<ReferenceValues>();
  } else {
    for (std::size_t i = 0; i < lengths.size(); ++i)
      samples->sequences.push_back({static_cast<std::int64_t>(i)});
  }
  samples->name =
      concat("instructions ", hash_text(xxh3(bytes)), " length ", length_, " seed ", seed_,
             options_.packing ? " packed"
             : options_.pairs ? " pairs"
                              : "");
  report(split, *samples, {tokens, learnt, cut, empty});
  splits_[static_cast<std::size_t>(split)] = std::move(samples);
}

void InstructData::report(Split split, const InstructSamples& samples, const Counts& counts) {
  const auto [tokens, learnt, cut, empty] = counts;
  const auto count = static_cast<std::int64_t>(samples.sequences.size()) * (options_.pairs ? 2 : 1);
  report_.push_back(concat(
      name(split), ": ", grouped(static_cast<std::int64_t>(samples.examples.size())),
      options_.pairs ? " texts of pairs, " : " records, ", grouped(tokens), " tokens, ",
      grouped(learnt), " of them learnt, in ", grouped(count), " sequences of ", length_, " (",
      fixed(100.0 * static_cast<double>(tokens) / static_cast<double>(count * length_), 1),
      " % filled)"));
  if (cut > 0)
    report_.push_back(concat(name(split), ": ", grouped(cut), " records are cut to ", length_,
                             " tokens: a larger --seq-length would keep them whole"));
  if (empty > 0) {
    report_.push_back(concat(name(split), ": ", grouped(empty), " records have no token to learn",
                             options_.response_template.empty()
                                 ? ""
                                 : ": the response template is not in them, or was cut off"));
  }
}

std::int64_t InstructData::size(Split split) const {
  const auto& samples = splits_[static_cast<std::size_t>(split)];
  return samples == nullptr ? 0 : static_cast<std::int64_t>(samples->sequences.size());
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

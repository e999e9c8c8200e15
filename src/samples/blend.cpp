#include "samples/blend.h"

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/md5.h"
#include "samples/index_files.h"
#include "samples/numpy_text.h"

namespace bloomery {
namespace {

constexpr const char *kSources = "_index.npy", *kSamples = "_sample_index.npy";
constexpr std::size_t kMostSources = 254;  // Megatron's limit: their numbers are bytes

double weight_of(const std::string& word, const std::string& option) {
  double weight = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), weight);
  check(error == std::errc{} && end == word.data() + word.size() && std::isfinite(weight) &&
            weight >= 0,
        option, ": '", word,
        "' stands where a weight is expected; write one prefix alone, or weight prefix weight "
        "prefix ...");
  return weight;
}

}  // namespace

WeightedPaths parse_weighted_paths(const std::vector<std::string>& words,
                                   const std::string& option) {
  check(!words.empty(), option, " needs a prefix, or weight prefix weight prefix ...");
  WeightedPaths paths;
  if (words.size() == 1) {
    paths.weights = {1.0};
    paths.prefixes = words;
    return paths;
  }
  check(words.size() % 2 == 0, option, " has ", words.size(),
        " words; write one prefix alone, or weight prefix weight prefix ...");
  check(words.size() / 2 <= kMostSources, option, " blends ", words.size() / 2,
        " corpora; the most is ", kMostSources);
  paths.is_blend = true;
  double sum = 0;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    paths.weights.push_back(weight_of(words[i], option));
    const std::string& prefix = words[i + 1];
    const std::size_t first = prefix.find_first_not_of(" \t\n");
    check(first != std::string::npos, option, ": the prefix after weight ", words[i], " is empty");
    paths.prefixes.push_back(prefix.substr(first, prefix.find_last_not_of(" \t\n") - first + 1));
    sum += paths.weights.back();
  }
  check(sum > 0, option, ": the weights add up to 0");
  for (double& weight : paths.weights) {
    weight /= sum;
  }
  return paths;
}

std::vector<std::int64_t> WeightedPaths::sizes(std::int64_t num_samples) const {
  if (!is_blend) {
    return {num_samples};
  }
  std::vector<std::int64_t> sizes;
  for (const double weight : weights) {
    sizes.push_back(
        static_cast<std::int64_t>(std::ceil(static_cast<double>(num_samples) * weight * 1.005)));
  }
  return sizes;
}

BlendIndex build_blend_index(std::span<const double> weights, std::int64_t size) {
  BlendIndex index;
  index.sources.resize(size);
  index.samples.resize(size);
  std::vector<std::int64_t> taken(weights.size(), 0);
  for (std::int64_t i = 0; i < size; ++i) {
    const double position = std::max(static_cast<double>(i), 1.0);
    std::size_t furthest = 0;
    double most = weights[0] * position - static_cast<double>(taken[0]);
    for (std::size_t source = 1; source < weights.size(); ++source) {
      const double behind = weights[source] * position - static_cast<double>(taken[source]);
      if (behind > most) {
        most = behind;
        furthest = source;
      }
    }
    index.sources[i] = static_cast<std::uint8_t>(furthest);
    index.samples[i] = taken[furthest]++;
  }
  return index;
}

Blend::Blend(std::vector<std::unique_ptr<Dataset>> sources, std::vector<double> weights,
             std::int64_t size, const std::string& cache_folder, const Log& log)
    : sources_(std::move(sources)), size_(size) {
  check(!sources_.empty() && sources_.size() == weights.size() && sources_.size() <= kMostSources,
        "a blend needs from 1 to ", kMostSources, " sources with a weight each");
  const double sum = numpy_sum(weights);
  check(sum > 0, "the weights of a blend add up to 0");
  description_ = "Blendable dataset\n\nDatasets:\n";
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    check(sources_[i]->fields() == fields(), "the datasets of a blend have different arrays");
    weights[i] /= sum;
    description_ += sources_[i]->description() + "\n\n";
  }
  description_ += concat("Weights: ", numpy_text(weights), "\nSize: ", size, "\n");
  open_index(weights, cache_folder, log);
}

void Blend::open_index(std::span<const double> weights, const std::string& cache_folder,
                       const Log& log) {
  if (cache_folder.empty()) {
    built_ = build_blend_index(weights, size_);
    return;
  }
  IndexFiles files;
  files.what = "the index of the blend";
  files.stem = md5_hex(description_);
  files.suffixes = {kSources, kSamples};
  files.description = description_;
  files.contents = description_;  // the arrays are functions of weights and size alone
  files.places = files.build_places = {cache_folder};
  open_or_build(
      files,
      [&](const std::filesystem::path& stem) {
        const BlendIndex index = build_blend_index(weights, size_);
        write_npy(with_suffix(stem, kSources), std::span(index.sources), {size_});
        write_npy(with_suffix(stem, kSamples), std::span(index.samples), {size_});
      },
      [&](const std::filesystem::path& stem) {
        source_file_ = std::make_unique<NpyFile>(with_suffix(stem, kSources));
        sample_file_ = std::make_unique<NpyFile>(with_suffix(stem, kSamples));
        check_array(*source_file_, NpyType::u8, {size_});
        check_array(*sample_file_, NpyType::i64, {size_});
      },
      log);
}

Blend::Place Blend::place(std::int64_t k) const {
  if (source_file_) {
    return {source_file_->value<std::uint8_t>(k), sample_file_->value<std::int64_t>(k)};
  }
  return {built_.sources[k], built_.samples[k]};
}

void Blend::read(std::int64_t k, const Sample& out) const {
  check(k >= 0 && k < size_, "sample ", k, " of a blend of ", size_, " was asked for");
  const auto [source, sample] = place(k);
  check(source < static_cast<std::int64_t>(sources_.size()), "sample ", k,
        " of the blend is of source ", source, " of ", sources_.size(),
        "; the cached index of the blend is damaged: remove it");
  // The last samples of a blend, beyond those asked for, may lie past the end of a source.
  check(sample >= 0 && sample < sources_[source]->size(), "sample ", k, " of the blend is sample ",
        sample, " of source ", source, ", which has ", sources_[source]->size(),
        "; ask for more samples");
  sources_[source]->read(sample, out);
}

}  // namespace bloomery

#include "samples/gpt_index_cache.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/md5.h"
#include "base/thread_pool.h"
#include "corpus/indexed_corpus.h"
#include "samples/index_files.h"

namespace bloomery {
namespace {

constexpr const char *kDocuments = "_doc_idx.npy", *kSamples = "_sample_idx.npy",
                     *kShuffle = "_shuffle_idx.npy";

template <class T>
void write_shuffle_index(const std::filesystem::path& path, const GptIndexPlan& plan,
                         NumpyRandom& random) {
  const std::vector<T> shuffle = build_shuffle_index<T>(plan, random);
  write_npy<T>(path, shuffle, {plan.total_samples});
}

void write_sample_index(const std::filesystem::path& path, std::span<const std::int32_t> lengths,
                        std::int64_t first_document, std::span<const std::int32_t> document_index,
                        const GptIndexPlan& plan) {
  NpyWriter writer(path, NpyType::i64, {plan.total_samples + 1, 2});
  build_sample_index(lengths, first_document, document_index, plan,
                     [&](std::span<const SampleStart> rows) { writer.write(std::as_bytes(rows)); });
  writer.commit();
}

}  // namespace

std::string GptIndexKey::description() const {
  return concat("GPT Dataset\n\nData prefix ", prefix, "\nDataset name ", name,
                "\nNumber of samples ", num_samples, "\nNumber of epochs ", num_epochs,
                "\nSequence length ", seq_length, "\nRandom seed ", seed, "\nSplit ", split, "\n");
}

std::string GptIndexKey::hash() const { return md5_hex(description()); }

void write_gpt_index(const std::filesystem::path& stem, std::span<const std::int32_t> lengths,
                     const SplitRange& documents, const GptIndexPlan& plan, std::int64_t seed) {
  NumpyRandom random(seed);
  const std::vector<std::int32_t> index = build_document_index(documents, plan, random);
  // From here on the three files need nothing of each other.
  const std::function<void()> writers[] = {
      [&] {
        write_sample_index(with_suffix(stem, kSamples), lengths, documents.first, index, plan);
      },
      [&] {
        if (needs_wide_shuffle(plan.total_samples)) {
          write_shuffle_index<std::int64_t>(with_suffix(stem, kShuffle), plan, random);
        } else {
          write_shuffle_index<std::uint32_t>(with_suffix(stem, kShuffle), plan, random);
        }
      },
      [&] {
        write_npy<std::int32_t>(with_suffix(stem, kDocuments), index,
                                {static_cast<std::int64_t>(index.size())});
      }};
  ThreadPool threads(static_cast<int>(std::size(writers)));
  threads.for_each(std::size(writers), [&](std::int64_t i) { writers[i](); });
}

GptIndex::GptIndex(const std::filesystem::path& stem, std::int64_t num_documents,
                   const GptIndexPlan& plan)
    : documents_(with_suffix(stem, kDocuments)),
      samples_(with_suffix(stem, kSamples)),
      shuffle_(with_suffix(stem, kShuffle)) {
  const bool wide = needs_wide_shuffle(plan.total_samples);
  check_array(documents_, NpyType::i32, {plan.num_epochs * num_documents});
  check_array(samples_, NpyType::i64, {plan.total_samples + 1, 2});
  check_array(shuffle_, wide ? NpyType::i64 : NpyType::u32, {plan.total_samples});
  const SampleStart first = start(0), last = start(plan.total_samples);
  check(first == SampleStart{} && last.position >= 0 && last.position < documents_.num_elements() &&
            last.offset >= 0,
        samples_.path().string(), " does not hold the starts of samples");
}

std::size_t GptIndex::read_documents(std::int64_t position, std::span<std::int32_t> out) const {
  const std::int64_t following = documents_.num_elements() - position;
  if (position < 0 || following <= 0) {
    return 0;
  }
  out = out.last(std::min(out.size(), static_cast<std::size_t>(following)));
  documents_.read(position, out);
  return out.size();
}

SampleStart GptIndex::start(std::int64_t row) const {
  std::int64_t values[2];
  samples_.read(2 * row, std::span<std::int64_t>(values));
  return {values[0], values[1]};
}

std::int64_t GptIndex::row(std::int64_t k) const {
  return shuffle_.type() == NpyType::u32 ? shuffle_.value<std::uint32_t>(k)
                                         : shuffle_.value<std::int64_t>(k);
}

std::unique_ptr<GptIndex> open_gpt_index(const GptIndexKey& key, const IndexedCorpus& corpus,
                                         const SplitRange& documents, const GptIndexPlan& plan,
                                         const std::string& cache_folder, const Log& log) {
  IndexFiles files;
  files.what = "the index of " + key.prefix;
  files.stem = key.hash();
  files.suffixes = {kDocuments, kSamples, kShuffle};
  files.description = key.description();
  files.contents = files.description + corpus.fingerprint() + "\n";
  files.places =
      index_places(std::filesystem::path(key.prefix).parent_path() / "index-cache", cache_folder);
  files.build_places = files.places;
  if (!cache_folder.empty()) {  // whoever names a folder wants the files there
    files.build_places.erase(files.build_places.begin());
  }
  std::unique_ptr<GptIndex> index;
  open_or_build(
      files,
      [&](const std::filesystem::path& stem) {
        write_gpt_index(stem, corpus.lengths(documents.first, documents.last), documents, plan,
                        key.seed);
      },
      [&](const std::filesystem::path& stem) {
        index = std::make_unique<GptIndex>(stem, documents.size(), plan);
      },
      log);
  return index;
}

}  // namespace bloomery

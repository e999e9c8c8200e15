#include "data/samples/gpt_index_cache.h"

#include "base/error.h"
#include "base/md5.h"
#include "base/temporary_folder.h"
#include "base/thread_pool.h"
#include "data/samples/cache_lock.h"

namespace bloomery {
namespace {

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

void check_shape(const NpyFile& file, NpyType type, const std::vector<std::int64_t>& shape) {
  check(file.type() == type, file.path().string(), " holds ", name(file.type()), ", not ",
        name(type));
  check(file.shape() == shape, file.path().string(), " has ", file.shape()[0],
        " rows, not the expected ", shape[0]);
}

std::unique_ptr<GptIndex> try_to_load(const GptIndexPaths& paths, const std::string& description,
                                      std::int64_t num_documents, const GptIndexPlan& plan,
                                      const Log& log) {
  if (!paths.exist()) {
    return nullptr;
  }
  try {
    return std::make_unique<GptIndex>(paths, description, num_documents, plan);
  } catch (const Error& error) {
    log.warning("the cached index is not used and will be built again: ", error.what());
    return nullptr;
  }
}

}  // namespace

std::string GptIndexKey::description() const {
  return concat("GPT Dataset\n\nData prefix ", prefix, "\nDataset name ", name,
                "\nNumber of samples ", num_samples, "\nNumber of epochs ", num_epochs,
                "\nSequence length ", seq_length, "\nRandom seed ", seed, "\nSplit ", split, "\n");
}

std::string GptIndexKey::hash() const { return md5_hex(description()); }

GptIndexPaths::GptIndexPaths(const std::filesystem::path& folder, const std::string& hash)
    : description(folder / (hash + ".dsc")),
      documents(folder / (hash + "_doc_idx.npy")),
      samples(folder / (hash + "_sample_idx.npy")),
      shuffle(folder / (hash + "_shuffle_idx.npy")) {}

bool GptIndexPaths::exist() const {
  std::error_code ignored;
  for (const std::filesystem::path* path : {&description, &documents, &samples, &shuffle}) {
    if (!std::filesystem::is_regular_file(*path, ignored)) {
      return false;
    }
  }
  return true;
}

void write_gpt_index(const GptIndexPaths& paths, const std::string& description,
                     std::span<const std::int32_t> lengths, const SplitRange& documents,
                     const GptIndexPlan& plan, std::int64_t seed) {
  NumpyRandom random(seed);
  const std::vector<std::int32_t> index = build_document_index(documents, plan, random);
  // From here on the three files need nothing of each other.
  const std::function<void()> writers[] = {
      [&] { write_sample_index(paths.samples, lengths, documents.first, index, plan); },
      [&] {
        if (needs_wide_shuffle(plan.total_samples)) {
          write_shuffle_index<std::int64_t>(paths.shuffle, plan, random);
        } else {
          write_shuffle_index<std::uint32_t>(paths.shuffle, plan, random);
        }
      },
      [&] {
        write_npy<std::int32_t>(paths.documents, index, {static_cast<std::int64_t>(index.size())});
      }};
  ThreadPool threads(static_cast<int>(std::size(writers)));
  threads.for_each(std::size(writers), [&](std::int64_t i) { writers[i](); });
  AtomicFile text(paths.description);
  text.write(description);
  text.commit();
}

GptIndex::GptIndex(const GptIndexPaths& paths, const std::string& description,
                   std::int64_t num_documents, const GptIndexPlan& plan)
    : documents_(paths.documents), samples_(paths.samples), shuffle_(paths.shuffle) {
  check(read_file(paths.description) == description, paths.description.string(),
        " describes another data set");
  const bool wide = needs_wide_shuffle(plan.total_samples);
  check_shape(documents_, NpyType::i32, {plan.num_epochs * num_documents});
  check_shape(samples_, NpyType::i64, {plan.total_samples + 1, 2});
  check_shape(shuffle_, wide ? NpyType::i64 : NpyType::u32, {plan.total_samples});
  const SampleStart first = start(0), last = start(plan.total_samples);
  check(first == SampleStart{} && last.position >= 0 &&
            last.position < static_cast<std::int64_t>(documents().size()) && last.offset >= 0,
        samples_.path().string(), " does not hold the starts of samples");
}

std::unique_ptr<GptIndex> open_gpt_index(const GptIndexKey& key, const SplitRange& documents,
                                         const GptIndexPlan& plan,
                                         const std::function<std::vector<std::int32_t>()>& lengths,
                                         const std::string& cache_folder, const Log& log) {
  const std::string description = key.description(), hash = key.hash();
  const auto load = [&](const std::filesystem::path& folder) {
    return try_to_load({folder, hash}, description, documents.size(), plan, log);
  };
  std::filesystem::path folder = std::filesystem::path(key.prefix).parent_path() / "index-cache";
  std::unique_ptr<GptIndex> index = load(folder);
  if (!index && !cache_folder.empty()) {
    folder = cache_folder;
    index = load(folder);
  }
  if (index) {
    return index;
  }
  if (!is_writable_folder(folder)) {
    log.warning("cannot write the index of ", key.prefix, " to ", folder.string(),
                "; it is built for this process only, and again at every start; give "
                "--data-cache-path a folder that can be written to");
    const TemporaryFolder temporary;  // the files stay mapped after they are removed
    write_gpt_index({temporary.path(), hash}, description, lengths(), documents, plan, key.seed);
    return std::make_unique<GptIndex>(GptIndexPaths(temporary.path(), hash), description,
                                      documents.size(), plan);
  }
  const CacheLock lock(folder, hash);
  const GptIndexPaths paths(folder, hash);
  index = paths.exist() ? load(folder) : nullptr;  // another rank may have built it meanwhile
  if (!index) {
    write_gpt_index(paths, description, lengths(), documents, plan, key.seed);
    index = std::make_unique<GptIndex>(paths, description, documents.size(), plan);
  }
  return index;
}

}  // namespace bloomery

#include "text/dedup/dedup.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "config/option_table.h"
#include "text/dedup/fingerprints.h"
#include "text/dedup/removals.h"
#include "text/input/byte_source.h"
#include "text/input/input_files.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

std::string settings_text(const DedupOptions& o, const std::vector<std::string>& files) {
  std::string text =
      concat("dedup method ", static_cast<int>(o.method), ", shingles of ", o.minhash.n_grams, ", ",
             o.minhash.num_buckets, " x ", o.minhash.hashes_per_bucket, ", seed ", o.minhash.seed,
             ", hash ", static_cast<int>(o.minhash.hash), ", key ", o.json_keys[0], ", format ",
             static_cast<int>(o.input_format), ", longest ", o.max_document_bytes, ", files");
  for (const std::string& file : files) text += " " + file;
  return text;
}

// The third pass: writes what is not removed.
class RemovingTransform : public LineTransform {
 public:
  RemovingTransform(const DedupOptions& options, const Fingerprints& fingerprints,
                    const std::vector<std::string>& files, const fs::path& removals)
      : key_(options.json_keys[0]),
        fingerprints_(fingerprints),
        files_(files),
        removals_(removals) {}

  void begin_chunk(const LineChunk& chunk) override {
    removals_.seek(fingerprints_.first_document[chunk.file] + chunk.first_line);
  }

  void apply(const LineChunk& chunk, const DocumentLine& line, Transformed& out) override {
    const std::uint64_t document = fingerprints_.first_document[chunk.file] + line.number;
    const std::vector<Removal>& removals = removals_.of(document);
    if (removals.empty()) return out.keep(line, key_);
    const std::string file = shown_name(files_[chunk.file]);
    if (removals[0].part == Removal::kWhole) {
      const bool same_file = removals[0].duplicate_of >= fingerprints_.first_document[chunk.file];
      return out.drop(line, key_,
                      same_file ? "duplicate of an earlier document of the file"
                                : "duplicate of a document of an earlier file",
                      file);
    }
    const std::vector<std::string_view> parts = paragraphs(line.texts[0]);
    text_.clear();
    std::size_t removal = 0;
    bool blank = true;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (removal < removals.size() && removals[removal].part == i) {
        ++removal;
        continue;
      }
      text_.append(parts[i]).append("\n");
      blank = blank && is_blank(parts[i]);
    }
    out.report.parts["paragraphs removed, which came before"] +=
        static_cast<std::int64_t>(removals.size());
    if (blank) return out.drop(line, key_, "every paragraph came before", file);
    text_.pop_back();
    ++out.report.changed;
    out.keep_with(line, key_, text_);
  }

 private:
  const std::string key_;
  const Fingerprints& fingerprints_;
  const std::vector<std::string>& files_;
  RemovalReader removals_;
  std::string text_;
};

std::vector<std::string> files_twice(const DedupOptions& options) {
  std::vector<std::string> files = input_files(options.input);
  check(std::ranges::find(files, "-") == files.end(),
        "dedup reads its input twice, so it cannot be standard input; write it to a file first");
  return files;
}

class Dedup {
 public:
  Dedup(const DedupOptions& options, const LineCaller& caller)
      : options_(options),
        caller_(caller),
        files_(files_twice(options)),
        work_(fs::path(options.output) / "dedup-work"),
        outputs_(jobs_in(options.output, files_, options.keep_dropped),
                 fs::path(options.output) / "report.json",
                 {settings_text(options, files_), options.overwrite}) {
    outputs_.set_work_folder(work_);
  }
  ~Dedup() {
    std::error_code in_use;
    fs::remove(work_, in_use);  // if nothing is in it
  }
  Dedup(const Dedup&) = delete;
  Dedup& operator=(const Dedup&) = delete;

  DedupSummary run() {
    if (const auto report = outputs_.finished()) {
      return {.report = *report, .was_finished = true};
    }
    if (options_.overwrite) fs::remove_all(work_);
    fs::create_directories(work_);
    if (!fingerprint()) return interrupted();
    const fs::path removals = work_ / "removals";
    if (!fs::exists(removals)) {
      caller_.messages << "looking for duplicates among " << fingerprints_.first_document.back()
                       << " documents" << std::endl;
      groups_ = find_removals(options_, fingerprints_, work_, removals);
      write_file(work_ / "groups", std::to_string(groups_));
    } else if (fs::exists(work_ / "groups")) {
      groups_ = std::stoll(read_file(work_ / "groups"));
    }
    const TransformResult result =
        transform_files(options_, caller_, outputs_.jobs(), outputs_.settings(), [&] {
          return std::make_unique<RemovingTransform>(options_, fingerprints_, files_, removals);
        });
    if (!result.complete) return interrupted();
    outputs_.finish(result.sum());
    return {.report = result.sum(), .groups = groups_};
  }

 private:
  bool fingerprint() {
    std::vector<TransformJob> jobs;
    for (const TransformJob& job : outputs_.jobs()) {
      fingerprints_.files.push_back(work_ / job.kept.filename().concat(".fingerprints"));
      jobs.push_back({job.input, fingerprints_.files.back(), {}});
    }
    caller_.messages << "fingerprints of " << files_.size() << " files" << std::endl;
    const TransformResult result =
        transform_files(options_, caller_, jobs, {outputs_.settings().text, false},
                        [&] { return make_fingerprinter(options_); });
    fingerprints_.first_document.assign(1, 0);
    for (const std::uint64_t lines : result.lines) {
      fingerprints_.first_document.push_back(fingerprints_.first_document.back() + lines);
    }
    return result.complete;
  }

  static DedupSummary interrupted() { return {.interrupted = true}; }

  const DedupOptions& options_;
  const LineCaller& caller_;
  const std::vector<std::string> files_;
  const fs::path work_;
  TransformOutputs outputs_;
  Fingerprints fingerprints_;
  std::int64_t groups_ = 0;
};

}  // namespace

void describe(OptionTable& t, DedupOptions& o) {
  describe_lines(t, o, "JSON key of the text.");
  t.section("duplicates");
  t.add("method", o.method,
        "minhash: near-duplicate documents. exact: documents with the same bytes. paragraphs: "
        "lines that occurred before, in any document.",
        {{"minhash", DedupMethod::minhash},
         {"exact", DedupMethod::exact},
         {"paragraphs", DedupMethod::paragraphs}});
  t.add("n-grams", o.minhash.n_grams, "Words per shingle.", between(1, 100));
  t.add(
      "num-buckets", o.minhash.num_buckets,
      "Number of LSH buckets; documents that agree in one are duplicates. More buckets find more.",
      between(1, 1000));
  t.add("hashes-per-bucket", o.minhash.hashes_per_bucket,
        "Hashes per bucket; more hashes find fewer duplicates.", between(1, 1000));
  t.add("seed", o.minhash.seed, "Seed of the hash functions.", between(0, UINT32_MAX));
  t.add("hash", o.minhash.hash, "Hash function of shingles: datatrove's default or FineWeb's.",
        {{"xxh64", ShingleHash::xxh64}, {"sha1", ShingleHash::sha1}});
  t.section("output");
  t.add("output", o.output, "Output folder for NAME.jsonl of each input and report.json.")
      .required();
  t.add("keep-dropped", o.keep_dropped, "Write dropped documents to NAME.dropped.jsonl.");
  t.add("overwrite", o.overwrite,
        "Replace existing output and start over. Without it an interrupted run continues.");
  t.section("running");
  t.add("memory", o.memory_bytes, "Memory for sorting in bytes; the rest goes to disk.",
        between(1 << 16, 1e15));
  describe_workers(t, o);
}

DedupSummary dedup(const DedupOptions& options, const LineCaller& caller) {
  return Dedup(options, caller).run();
}

}  // namespace bloomery

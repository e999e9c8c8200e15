#include "data/preprocess/preprocess.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/number_text.h"
#include "base/thread_pool.h"
#include "data/input/byte_source.h"
#include "data/input/input_files.h"
#include "data/preprocess/pipeline.h"
#include "data/preprocess/progress.h"

namespace bloomery {
namespace {

// One thread reads, and cannot feed more than about this many.
constexpr int kMostWorkers = 64;
constexpr std::size_t kIndexBytesOfSequence = 12;  // a length and an offset

void check_output_folder(const PreprocessOptions& options) {
  const std::filesystem::path folder = std::filesystem::path(options.output_prefix).parent_path();
  check(folder.empty() || std::filesystem::is_directory(folder), "--output-prefix ",
        options.output_prefix, ": the folder ", folder.string(),
        " does not exist; create it first");
}

class Run {
 public:
  Run(const PreprocessOptions& options, TokenType type, const PreprocessCaller& caller,
      std::vector<std::string> files)
      : options_(options),
        files_(std::move(files)),
        total_bytes_(total_bytes(files_)),
        progress_(caller.messages, {caller.terminal, options.log_interval, total_bytes_}) {
    summary_.type = type;
    for (const std::string& key : options.json_keys) {
      summary_.outputs.push_back({corpus_prefix(options, key)});
      writers_.push_back(std::make_unique<IndexedWriter>(summary_.outputs.back().prefix, type,
                                                         options.dataset_impl));
    }
  }

  const std::vector<std::string>& files() const { return files_; }
  PreprocessProgress& progress() { return progress_; }

  void take(const EncodedChunk& chunk) {
    report_bad_lines(chunk);
    summary_.lines += chunk.lines;
    summary_.empty_texts += chunk.empty_texts;
    summary_.bytes += chunk.bytes;
    position_ = chunk.input_position;
    for (const EncodedBatch& batch : chunk.batches) {
      output_bytes_ += batch.tokens.size() + kIndexBytesOfSequence * batch.lengths.size() +
                       sizeof(std::int64_t) * batch.document_sequences.size();
    }
    writing([&] {
      for (std::size_t key = 0; key < writers_.size(); ++key) {
        writers_[key]->append(chunk.batches[key]);
      }
    });
    progress_.advance(chunk.lines, chunk.bytes, chunk.input_position);
  }

  PreprocessSummary finish(bool complete) {
    progress_.finish();
    summary_.interrupted = !complete;
    if (complete) {
      check_something_was_read();
      for (std::size_t key = 0; key < writers_.size(); ++key) {
        summary_.outputs[key].documents = writers_[key]->num_documents();
        summary_.outputs[key].tokens = writers_[key]->num_tokens();
        writing([&] { writers_[key]->commit(); });
      }
    }
    return summary_;
  }

 private:
  // A failure to write is a matter of this machine; how much the whole input will need helps to
  // find another place.
  template <class Body>
  void writing(const Body& body) {
    try {
      body();
    } catch (const Error&) {
      throw;
    } catch (const std::runtime_error& error) {
      if (total_bytes_ == 0 || position_ == 0) {
        throw;
      }
      const double share = static_cast<double>(position_) / static_cast<double>(total_bytes_);
      const double bytes = static_cast<double>(output_bytes_) / std::min(1.0, share);
      throw std::runtime_error(concat(error.what(), "; the corpora of all input need about ",
                                      static_cast<std::uint64_t>(bytes), " bytes (",
                                      size_text(bytes), ")"));
    }
  }

  void check_something_was_read() const {
    check(std::ranges::any_of(writers_, [](const auto& w) { return w->num_documents() > 0; }),
          "no document in the input (", summary_.bad_lines, " bad lines, ", summary_.empty_texts,
          " empty texts); nothing was written. A document is a line of text, or of JSON with ",
          "--json-keys in it");
  }

  void report_bad_lines(const EncodedChunk& chunk) {
    for (const BadLine& line : chunk.first_bad_lines) {
      const std::string text = line.text(files_);
      check(!options_.strict, text, "; --strict stops here, nothing was written");
      if (reported_++ < kBadLinesReported) {
        progress_.message("bad line: " + text);
      }
    }
    summary_.bad_lines += chunk.bad_lines;
  }

  const PreprocessOptions& options_;
  const std::vector<std::string> files_;
  const std::uint64_t total_bytes_;
  PreprocessProgress progress_;
  std::vector<std::unique_ptr<IndexedWriter>> writers_;
  PreprocessSummary summary_;
  std::uint64_t position_ = 0;      // in the input
  std::uint64_t output_bytes_ = 0;  // that this much of the input needs
  std::size_t reported_ = 0;
};

}  // namespace

PreprocessSummary preprocess(const PreprocessOptions& options, const EncodeOptions& encode,
                             const Tokenizer& tokenizer, const PreprocessCaller& caller) {
  check_output_folder(options);
  // Megatron writes the older formats as i32 always.
  const TokenType type = options.dataset_impl == CorpusFormat::mmap
                             ? token_type_for(tokenizer.vocab_size())
                             : TokenType::i32;
  PipelineOptions pipeline;
  pipeline.files = input_files(options.input);
  pipeline.format = options.input_format;
  pipeline.encode = {
      .keys = options.json_keys,
      .document = {options.split_sentences, options.keep_newlines, options.append_eod, encode},
      .max_line_bytes = static_cast<std::size_t>(options.max_document_bytes)};
  pipeline.type = type;
  const int cores = usable_cores();
  pipeline.workers = std::min({options.workers > 0 ? options.workers : cores, cores, kMostWorkers});

  Run run(options, type, caller, pipeline.files);
  const bool complete = run_pipeline(
      tokenizer, pipeline,
      {.take = [&](const EncodedChunk& chunk) { run.take(chunk); },
       .opened = [&](const std::string& file) { run.progress().opened(shown_name(file)); },
       .go_on = caller.go_on});
  return run.finish(complete);
}

}  // namespace bloomery

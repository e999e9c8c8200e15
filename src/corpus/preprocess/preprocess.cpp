#include "corpus/preprocess/preprocess.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/number_text.h"
#include "corpus/preprocess/chunk_encoder.h"
#include "corpus/preprocess/partitions.h"
#include "text/input/input_files.h"
#include "text/lines/line_run.h"

namespace bloomery {
namespace {

constexpr std::size_t kIndexBytesOfSequence = 12;  // a length and an offset

void check_output_folder(const PreprocessOptions& options) {
  const std::filesystem::path folder = std::filesystem::path(options.output_prefix).parent_path();
  check(folder.empty() || std::filesystem::is_directory(folder), "--output-prefix ",
        options.output_prefix, ": the folder ", folder.string(),
        " does not exist; create it first");
}

class Run {
 public:
  Run(const PreprocessOptions& options, TokenType type, const LineCaller& caller)
      : options_(options), lines_(options, caller, input_files(options.input)) {
    const std::vector<std::string>& files = lines_.files();
    std::vector<PartitionStart> starts = partition_starts(files, options.partitions);
    starts.push_back({files.size(), 0});
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
      const PartitionStart begin = starts[i], end = starts[i + 1];
      LineReaderOptions how = lines_.reader_options(true);
      how.first_file = begin.file;
      how.begin = begin.row;
      if (end.row > 0) how.end_row = end.row;
      readers_.push_back(std::make_unique<LineReader>(
          std::vector(
              files.begin() + static_cast<std::ptrdiff_t>(begin.file),
              files.begin() + static_cast<std::ptrdiff_t>(end.file + (end.row > 0 ? 1 : 0))),
          how, lines_.stop()));
    }
    summary_.type = type;
    for (const std::string& key : options.json_keys) {
      summary_.outputs.push_back({corpus_prefix(options, key)});
      writers_.push_back(std::make_unique<PartitionedWriter>(
          summary_.outputs.back().prefix, type, options.dataset_impl, readers_.size()));
    }
  }

  PreprocessSummary encode(const Tokenizer& tokenizer, const EncodeOptions& encode) {
    const ChunkEncoderOptions how{
        .keys = options_.json_keys,
        .document = {options_.split_sentences, options_.keep_newlines, options_.append_eod, encode},
        .max_line_bytes = static_cast<std::size_t>(options_.max_document_bytes)};
    std::vector<ChunkSource*> streams;
    for (const auto& reader : readers_) streams.push_back(reader.get());
    const bool complete = lines_.run<EncodedChunk>(
        streams,
        [&](std::size_t) {
          return [encoder = std::make_shared<ChunkEncoder>(tokenizer, how, summary_.type)](
                     const LineChunk& chunk, EncodedChunk& out) { encoder->encode(chunk, out); };
        },
        [&](std::size_t partition, const LineChunk&, const EncodedChunk& chunk) {
          take(partition, chunk);
        },
        {}, static_cast<int>(streams.size()));
    return finish(complete, tokenizer);
  }

 private:
  void take(std::size_t partition, const EncodedChunk& chunk) {
    summary_.empty_texts += chunk.empty_texts;
    for (const EncodedBatch& batch : chunk.batches) {
      output_bytes_ += batch.tokens.size() + kIndexBytesOfSequence * batch.lengths.size() +
                       sizeof(std::int64_t) * batch.document_sequences.size();
    }
    writing([&] {
      for (std::size_t key = 0; key < writers_.size(); ++key) {
        writers_[key]->partition(partition).append(chunk.batches[key]);
      }
    });
  }

  PreprocessSummary finish(bool complete, const Tokenizer& tokenizer) {
    lines_.progress().finish();
    summary_.lines = lines_.totals().lines;
    summary_.bad_lines = lines_.totals().bad_lines;
    summary_.bytes = lines_.totals().bytes;
    summary_.interrupted = !complete;
    if (complete) {
      check_something_was_read();
      for (std::size_t key = 0; key < writers_.size(); ++key) {
        writing([&] {
          IndexedWriter& writer = writers_[key]->joined();
          summary_.outputs[key].documents = writer.num_documents();
          summary_.outputs[key].tokens = writer.num_tokens();
          if (!options_.tokenizer_name.empty()) {
            writer.set_tokenizer(corpus_tokenizer(tokenizer, options_.tokenizer_name));
          }
          writer.commit();
        });
      }
    }
    return summary_;
  }

  // A failure to write is a matter of this machine; how much the whole input will need helps to
  // find another place.
  template <class Body>
  void writing(const Body& body) {
    try {
      body();
    } catch (const Error&) {
      throw;
    } catch (const std::runtime_error& error) {
      const double share = lines_.share();
      if (share == 0) throw;
      const double bytes = static_cast<double>(output_bytes_) / share;
      throw std::runtime_error(concat(error.what(), "; the corpora of all input need about ",
                                      static_cast<std::uint64_t>(bytes), " bytes (",
                                      size_text(bytes), ")"));
    }
  }

  void check_something_was_read() const {
    check(std::ranges::any_of(writers_, [](const auto& w) { return !w->empty(); }),
          "no document in the input (bad lines: ", summary_.bad_lines,
          ", empty texts: ", summary_.empty_texts,
          "); nothing was written. Give text with one document per line, or JSON lines, whose key ",
          "--json-keys names");
  }

  const PreprocessOptions& options_;
  LineRun lines_;
  std::vector<std::unique_ptr<LineReader>> readers_;         // of each partition
  std::vector<std::unique_ptr<PartitionedWriter>> writers_;  // of each key
  PreprocessSummary summary_;
  std::uint64_t output_bytes_ = 0;  // that this much of the input needs
};

}  // namespace

PreprocessSummary preprocess(const PreprocessOptions& options, const EncodeOptions& encode,
                             const Tokenizer& tokenizer, const LineCaller& caller) {
  check_output_folder(options);
  // Megatron writes the older formats as i32 always.
  const TokenType type = options.dataset_impl == CorpusFormat::mmap
                             ? token_type_for(tokenizer.vocab_size())
                             : TokenType::i32;
  return Run(options, type, caller).encode(tokenizer, encode);
}

}  // namespace bloomery

#include "apps/tokenizer/line_batches.h"

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/input/byte_source.h"

namespace bloomery {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{4} << 20;

// Appends up to kBatchBytes of what is there, so that a pipe is answered while it waits; false at
// the end.
bool read_more(FileSource& input, std::string& buffer) {
  const std::size_t before = buffer.size();
  buffer.resize(before + kBatchBytes);
  const std::size_t count = input.read(std::span(buffer).subspan(before));
  buffer.resize(before + count);
  return count > 0;
}

std::vector<std::string> names_of(const std::vector<std::string>& inputs) {
  return inputs.empty() ? std::vector<std::string>{"-"} : inputs;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// What one thread made of its share of a batch.
struct Share {
  std::string answers;
  std::optional<std::size_t> bad_line;  // within the batch
  std::string problem;
};

class Batches {
 public:
  Batches(int workers, const AnswerLine& answer, std::ostream& out)
      : pool_(workers), answer_(answer), out_(out) {}

  void start(const std::string& name) {
    name_ = name;
    number_ = 0;
  }

  void run(std::string_view text) {
    const std::vector<std::string_view> lines = lines_of(text);
    std::vector<Share> shares(static_cast<std::size_t>(pool_.num_threads()));
    pool_.for_each(static_cast<std::int64_t>(shares.size()), [&](std::int64_t worker) {
      const auto w = static_cast<std::size_t>(worker);
      const std::size_t begin = lines.size() * w / shares.size();
      const std::size_t end = lines.size() * (w + 1) / shares.size();
      answer_share(lines, begin, end, w, shares[w]);
    });
    for (const Share& share : shares) {
      out_.write(share.answers.data(), static_cast<std::streamsize>(share.answers.size()));
      if (share.bad_line) {
        throw Error(concat(name_, ", line ", number_ + *share.bad_line + 1, ": ", share.problem));
      }
    }
    out_.flush();
    number_ += lines.size();
  }

 private:
  void answer_share(const std::vector<std::string_view>& lines, std::size_t begin, std::size_t end,
                    std::size_t worker, Share& share) const {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t before = share.answers.size();
      try {
        answer_(worker, lines[i], share.answers);
      } catch (const Error& error) {
        share.answers.resize(before);
        share.bad_line = i;
        share.problem = error.what();
        return;
      }
      share.answers += '\n';
    }
  }

  ThreadPool pool_;
  const AnswerLine& answer_;
  std::ostream& out_;
  std::string name_;
  std::size_t number_ = 0;  // lines of this input before the batch
};

}  // namespace

std::string read_whole(const std::vector<std::string>& inputs) {
  std::string text;
  for (const std::string& name : names_of(inputs)) {
    FileSource input(name);
    while (read_more(input, text)) {
    }
  }
  return text;
}

void answer_lines(const std::vector<std::string>& inputs, int workers, const AnswerLine& answer,
                  std::ostream& out) {
  Batches batches(workers, answer, out);
  for (const std::string& name : names_of(inputs)) {
    FileSource input(name);
    batches.start(input.name());
    std::string buffer;  // what follows the last line break
    for (std::size_t before = 0; read_more(input, buffer); before = buffer.size()) {
      const std::size_t last = std::string_view(buffer).substr(before).rfind('\n');
      if (last == buffer.npos) continue;
      batches.run(std::string_view(buffer).substr(0, before + last + 1));
      buffer.erase(0, before + last + 1);
    }
    batches.run(buffer);
  }
}

}  // namespace bloomery

#include "line_batches.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/thread_pool.h"

namespace bloomery {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{4} << 20;

// One input, or standard input under the name "-".
class Input {
 public:
  explicit Input(const std::string& name)
      : name_(name == "-" ? "standard input" : name),
        file_(name == "-" ? stdin : std::fopen(name.c_str(), "rb")) {
    check(file_ != nullptr, name, ": ", std::strerror(errno));
  }
  ~Input() {
    if (file_ != stdin) std::fclose(file_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Appends up to `size` bytes; false at the end.
  bool read(std::string& buffer, std::size_t size) {
    const std::size_t before = buffer.size();
    buffer.resize(before + size);
    const std::size_t count = std::fread(buffer.data() + before, 1, size, file_);
    buffer.resize(before + count);
    if (std::ferror(file_) != 0) throw std::runtime_error(concat("reading ", name_, " failed"));
    return count > 0;
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::FILE* file_;
};

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
        out_.flush();
        throw Error(concat(name_, ", line ", number_ + *share.bad_line + 1, ": ", share.problem));
      }
    }
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
    Input input(name);
    while (input.read(text, kBatchBytes)) {
    }
  }
  return text;
}

void answer_lines(const std::vector<std::string>& inputs, int workers, const AnswerLine& answer,
                  std::ostream& out) {
  Batches batches(workers, answer, out);
  for (const std::string& name : names_of(inputs)) {
    Input input(name);
    batches.start(input.name());
    std::string buffer;
    while (input.read(buffer, kBatchBytes)) {
      const std::size_t last = buffer.rfind('\n');
      if (last == buffer.npos) continue;
      batches.run(std::string_view(buffer).substr(0, last + 1));
      buffer.erase(0, last + 1);
    }
    batches.run(buffer);
  }
}

}  // namespace bloomery

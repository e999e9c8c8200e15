#include "apps/tokenizer/answer_lines.h"

#include <atomic>
#include <vector>

#include "base/error.h"
#include "text/input/byte_source.h"
#include "text/lines/line_engine.h"

namespace bloomery {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 30;

std::vector<std::string> names_of(const std::vector<std::string>& inputs) {
  return inputs.empty() ? std::vector<std::string>{"-"} : inputs;
}

// What became of a chunk.
struct Answers {
  std::string text;
  std::size_t lines = 0;  // answered
  std::string problem;    // of the line after them; empty: there is none
};

void answer_chunk(std::size_t worker, const LineChunk& chunk, const AnswerLine& answer,
                  Answers& answers) {
  answers.text.clear();
  answers.problem.clear();
  answers.lines = 0;
  if (chunk.overlong_bytes > 0) {
    answers.problem = concat("a line of ", chunk.overlong_bytes,
                             " bytes; the most that is read is ", kLongestLine);
  }
  const std::string_view text = chunk.bytes();
  for (std::size_t at = 0; at < text.size(); ++answers.lines) {
    const std::size_t before = answers.text.size();
    try {
      answer(worker, next_line(text, at), answers.text);
    } catch (const Error& error) {
      answers.text.resize(before);
      answers.problem = error.what();
      return;
    }
    answers.text += '\n';
  }
}

}  // namespace

std::string read_whole(const std::vector<std::string>& inputs) {
  constexpr std::size_t kReadBytes = std::size_t{4} << 20;
  std::string text;
  for (const std::string& name : names_of(inputs)) {
    FileSource input(name);
    std::size_t count = 0;
    do {
      const std::size_t before = text.size();
      text.resize(before + kReadBytes);
      count = input.read(std::span(text).subspan(before));
      text.resize(before + count);
    } while (count > 0);
  }
  return text;
}

void answer_lines(const std::vector<std::string>& inputs, int workers, const AnswerLine& answer,
                  std::ostream& out) {
  const std::vector<std::string> names = names_of(inputs);
  std::atomic<bool> stop = false;
  LineReader reader(
      names, {.max_line_bytes = kLongestLine, .format = LineFormat::text, .at_once = true}, &stop);
  const LineEngineOptions engine{.streams = {&reader}, .workers = workers, .stop = &stop};
  std::vector<Answers> answers(num_slots(engine));
  std::size_t number = 0;  // lines of this input before the chunk
  run_line_engine(engine, {.make_worker =
                               [&](std::size_t worker) {
                                 return [&, worker](const LineChunk& chunk, std::size_t slot) {
                                   answer_chunk(worker, chunk, answer, answers[slot]);
                                 };
                               },
                           .take =
                               [&](std::size_t, const LineChunk& chunk, std::size_t slot) {
                                 const Answers& made = answers[slot];
                                 out.write(made.text.data(),
                                           static_cast<std::streamsize>(made.text.size()));
                                 out.flush();
                                 number = (chunk.first_of_file ? 0 : number) + made.lines;
                                 check(made.problem.empty(), shown_name(names[chunk.file]),
                                       ", line ", number + 1, ": ", made.problem);
                               },
                           .ended = {},
                           .go_on = [] { return true; }});
}

}  // namespace bloomery

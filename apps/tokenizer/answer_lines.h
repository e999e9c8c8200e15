// Input of the tokenizer commands: files one after another, or standard input; lines that threads
// work on while the order of answers stays that of the lines.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// The contents of all inputs; no inputs: standard input.
std::string read_whole(const std::vector<std::string>& inputs);

// Appends the answer to one line, without its end. Throws Error when the line is bad. `worker` is
// the number of the thread that calls.
using AnswerLine =
    std::function<void(std::size_t worker, std::string_view line, std::string& answer)>;

// Answers every line of the inputs, one line each, as soon as a pipe has it. At a bad line the
// answers to the lines before it are written, then an Error names input and line.
void answer_lines(const std::vector<std::string>& inputs, int workers, const AnswerLine& answer,
                  std::ostream& out);

}  // namespace bloomery

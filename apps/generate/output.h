// Where generated texts go: lines of JSON, blocks of text, files.
#pragma once

#include <fstream>
#include <memory>

#include "apps/generate/options.h"

namespace bloomery {

// A generation as one line of JSON without the line end.
std::string generation_json(const std::string& prompt, const Generation& result, bool beam);

class GenerateOutput {
 public:
  // Makes the files that the command names. `out` must outlive this object. `answers`: texts do not
  // go on from their prompts, which are then not shown.
  GenerateOutput(const GenerateCommand& command, std::ostream& out, bool several, bool answers);

  // Whether texts are shown to people, who may see them grow.
  bool shows_text() const { return shows_text_; }
  // What comes before the text of a result; with it shown piece by piece, write() adds the rest.
  void begin(const std::string& prompt, std::int64_t prompt_number, std::int64_t sample);
  void piece(const std::string& text);
  // `shown`: begin() and piece() have shown the text already.
  void write(const std::string& prompt, const Generation& result, bool shown);
  // After each batch: what is done must not wait in buffers.
  void flush();

 private:
  struct File {
    std::string path;
    std::ofstream stream;
    explicit File(const std::string& name);
    void flush();
  };

  std::ostream& out_;
  bool json_, several_, answers_, beams_, shows_text_;
  std::unique_ptr<File> rows_, blocks_;
};

}  // namespace bloomery

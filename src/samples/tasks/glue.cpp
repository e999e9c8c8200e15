// The files of GLUE: columns between tabs, without quoting.
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "samples/tasks/task_text.h"
#include "text/input/byte_source.h"
#include "text/input/python_text.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr int kNone = -1, kLast = -2;

// Where a row has what, columns from 0; `columns` 0: any number.
struct Columns {
  int columns, uid, first, second, label;
};
struct Layout {
  std::string_view task;
  Columns labelled, unlabelled;
  bool by_name = false;  // unlabelled files begin with "index", not with another number of columns
  bool has_header = true;  // labelled files do
};
constexpr Layout kLayouts[] = {
    {"MNLI", {0, 0, 8, 9, kLast}, {10, 0, 8, 9, kNone}},
    {"QQP", {6, 0, 3, 4, 5}, {3, 0, 1, 2, kNone}},
    {"QNLI", {4, 0, 1, 2, 3}, {3, 0, 1, 2, kNone}},
    {"RTE", {4, 0, 1, 2, 3}, {3, 0, 1, 2, kNone}},
    {"SST-2", {2, kNone, 0, kNone, 1}, {2, 0, 1, kNone, kNone}, true},
    {"CoLA", {4, kNone, 3, kNone, 1}, {2, 0, 1, kNone, kNone}, false, false},
    {"MRPC", {5, kNone, 3, 4, 0}, {5, 0, 3, 4, kNone}, true},
    {"STS-B", {10, 0, 7, 8, 9}, {9, 0, 7, 8, kNone}},
};

const Layout& layout_of(const TaskKind& task) {
  for (const Layout& each : kLayouts) {
    if (each.task == task.name) {
      return each;
    }
  }
  throw Error(concat(task.name, " is no task of GLUE"));
}

using Cells = std::vector<std::string_view>;

Cells cells_of(std::string_view line) {
  Cells cells;
  line = strip(line);
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(line.find('\t', begin), line.size());
    cells.push_back(strip(line.substr(begin, end - begin)));
    if (end == line.size()) {
      return cells;
    }
    begin = end + 1;
  }
}

template <class Number>
Number parsed(std::string_view text, const std::string& place, const char* what) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc() && end == text.data() + text.size(), place, ": ", what, " '", text,
        "' is no number");
  return number;
}

class GlueReader {
 public:
  GlueReader(const TaskKind& task, const std::string& path)
      : task_(task), layout_(layout_of(task)), path_(path) {}

  GlueFile read() {
    check(!std::filesystem::is_directory(path_), path_, " is a folder; ", task_.name,
          " is read from its .tsv files");
    const std::string text = read_decompressed(path_);
    for (const std::string_view line : python_lines(text)) {
      ++line_;
      check(valid_utf8_prefix(line) == line.size(), place(), ": is no valid UTF-8");
      if (const Cells cells = cells_of(line); line_ > 1 || !take_header(cells)) {
        take_row(cells);
      }
    }
    check(!file_.rows.empty(), path_, ": there is no row of ", task_.name, " in it");
    if (skipped_ > 0) {
      file_.notes.push_back(
          concat(path_, ": ", skipped_, " rows were left out, the first ", first_skipped_));
    }
    return std::move(file_);
  }

 private:
  std::string place() const { return concat(path_, ", line ", line_); }
  const Columns& columns() const { return file_.labelled ? layout_.labelled : layout_.unlabelled; }

  // Whether the first line is a header: only unlabelled files of some tasks have one.
  bool take_header(const Cells& cells) {
    const auto count = static_cast<int>(cells.size());
    file_.labelled = layout_.by_name ? cells[0] != "index" : count != layout_.unlabelled.columns;
    const int wanted = columns().columns;
    check(wanted == 0 ? count > layout_.unlabelled.columns : count == wanted, place(), ": ",
          task_.name, " has ", expected(), ", and this line has ", count,
          ": is it the file of another task?");
    return layout_.has_header || !file_.labelled;
  }
  std::string expected() const {
    const int labelled = layout_.labelled.columns, unlabelled = layout_.unlabelled.columns;
    return concat(labelled == 0 ? "more than " : "", labelled == 0 ? unlabelled : labelled,
                  " columns between tabs, or without labels ", unlabelled);
  }

  void take_row(const Cells& cells) {
    const Columns& at = columns();
    const auto count = static_cast<int>(cells.size());
    const int needed = at.columns > 0 ? at.columns : at.second + 1;
    if (at.columns > 0 ? count != needed : count < needed) {
      return leave_out(concat("with ", count, " columns in place of ", needed));
    }
    const auto cell = [&](int column) { return cells[static_cast<std::size_t>(column)]; };
    GlueRow row;
    row.first = clean_text(cell(at.first));
    bool has_texts = !row.first.empty();
    if (at.second != kNone) {
      row.second = clean_text(cell(at.second));
      has_texts = has_texts && !row.second->empty();
    }
    if (!has_texts) {
      return leave_out("without a text");
    }
    row.uid = at.uid == kNone ? static_cast<std::int64_t>(file_.rows.size())
                              : parsed<std::int64_t>(cell(at.uid), place(), "the number");
    check(row.uid >= 0, place(), ": the number ", row.uid, " is negative");
    if (at.label != kNone) {
      take_label(at.label == kLast ? cells.back() : cell(at.label), row);
    }
    file_.rows.push_back(std::move(row));
  }

  void take_label(std::string_view label, GlueRow& row) const {
    if (task_.answer == TaskAnswer::number) {
      row.score = parsed<float>(label, place(), "the score");
      return;
    }
    std::string known;
    for (std::size_t i = 0; i < task_.labels.size(); ++i) {
      if (task_.labels[i] == label) {
        row.label = static_cast<std::int32_t>(i);
        return;
      }
      known += concat(i == 0 ? "" : ", ", task_.labels[i]);
    }
    throw Error(
        concat(place(), ": '", label, "' is no label of ", task_.name, ", which has ", known));
  }

  void leave_out(const std::string& why) {
    check(layout_.labelled.columns > 0, place(), ": a row ", why);
    if (skipped_++ == 0) {
      first_skipped_ = concat("in line ", line_, ", ", why);
    }
  }

  const TaskKind& task_;
  const Layout& layout_;
  const std::string path_;
  std::int64_t line_ = 0, skipped_ = 0;
  std::string first_skipped_;
  GlueFile file_;
};

}  // namespace

GlueFile read_glue(const TaskKind& task, const std::string& path) {
  return GlueReader(task, path).read();
}

}  // namespace bloomery

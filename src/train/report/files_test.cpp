#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "harness/shared_data.h"
#include "train/report/crc32c.h"
#include "train/report/megatron_scalars.h"
#include "train/report/metrics_file.h"

namespace bloomery {
namespace {

template <class T>
T at(const std::string& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The payloads of a file of records, every checksum checked.
std::vector<std::string> payloads(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<std::string> result;
  for (std::size_t offset = 0; offset < bytes.size();) {
    const auto length = at<std::uint64_t>(bytes, offset);
    EXPECT_EQ(at<std::uint32_t>(bytes, offset + 8), masked_crc32c(bytes.substr(offset, 8)));
    result.push_back(bytes.substr(offset + 12, length));
    EXPECT_EQ(at<std::uint32_t>(bytes, offset + 12 + length), masked_crc32c(result.back()));
    offset += length + 16;
  }
  return result;
}

IterationReport report_at(std::int64_t iteration, double loss) {
  IterationReport r;
  r.iteration = iteration;
  r.train_iterations = 100;
  r.consumed_samples = iteration * 8;
  r.consumed_tokens = iteration * 8 * 128;
  r.losses = {{"lm loss", loss}};
  r.learning_rate = 1e-3;
  r.grad_norm = 0.5;
  r.seq_length = 128;
  return r;
}

// Says what it was told.
struct Warnings {
  std::vector<std::string> lines;
  Warn take() {
    return [this](const std::string& line) { lines.push_back(line); };
  }
};

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventFile, RecordsAreFramedAndStartWithTheVersion) {
  const TemporaryFolder folder;
  const auto where = folder.file("x", "").parent_path() / "deep" / "events";
  EventFile events(where, 1700000000.25);
  events.add_scalar("a", 1.5, 3, 1700000001);
  EXPECT_EQ(payloads(events.path()).size(), 1u) << "nothing is written before flush()";
  events.flush();
  const auto all = payloads(events.path());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(all[0].find("brain.Event:2"), std::string::npos);
  // wall_time 1; step 3; summary { value { tag "a" simple_value 1.5 } }.
  const std::string body(
      "\x10\x03\x2a\x0a\x0a\x08\x0a\x01"
      "a"
      "\x15\x00\x00\xc0\x3f",
      14);
  EXPECT_EQ(all[1].substr(9), body);
  EXPECT_EQ(at<double>(all[1], 1), 1700000001.0);

  EventFile resumed(where, 1700000000.25);
  EXPECT_NE(resumed.path(), events.path()) << "a second writer takes a new file";
}

TEST(EventFile, MegatronNames) {
  const TemporaryFolder folder;
  EventFile events(folder.file("x", "").parent_path(), 1);
  add_iteration_scalars(events, report_at(2, 3.0), {}, 1, 2);
  add_evaluation_scalars(events, {.iteration = 2, .losses = {{"lm loss", 3.0}}}, 16, 2048,
                         {.validation_perplexity = true}, 2);
  add_argument_texts(events, {{"num_layers", "2"}}, 0, 2);
  events.flush();
  std::string all;
  for (const std::string& payload : payloads(events.path())) all += payload;
  for (const char* tag :
       {"steps-vs-samples/y=steps,x=samples", "steps-vs-tokens/y=tokens,x=steps",
        "learning-rate/learning-rate vs tokens", "lm-loss-training/lm loss vs samples",
        "grad-norm/grad-norm", "seqlen/actual_seq_length", "lm-loss-validation/lm loss validation",
        "lm-loss-validation/lm loss validation ppl vs tokens", "num_layers/text_summary"}) {
    EXPECT_NE(all.find(tag), std::string::npos) << tag;
  }
  EXPECT_EQ(all.find("batch-size"), std::string::npos) << "only where it was asked for";
}

TEST(MetricsFile, RowsComeBackWithTheSameBits) {
  const TemporaryFolder folder;
  const auto path = folder.file("x", "").parent_path() / "metrics.jsonl";
  const double loss = 0.1 + 0.2;
  {
    MetricsFile file(path, 0);
    file.add(metrics_row(report_at(1, loss), 5.5));
    file.add(metrics_row(report_at(2, std::numeric_limits<double>::quiet_NaN()), 6.5));
    file.add(
        metrics_row(EvaluationReport{.iteration = 2, .losses = {{"lm loss", 2.0}}}, 16, 2048, 7));
  }
  const MetricsHistory history = read_metrics(path);
  ASSERT_EQ(history.rows.size(), 3u);
  EXPECT_EQ(history.damaged_lines, 0);
  EXPECT_EQ(history.rows[0].value("lm_loss"), loss);
  EXPECT_EQ(history.rows[0].tokens, 1024);
  EXPECT_EQ(history.rows[0].time, 5.5);
  EXPECT_TRUE(std::isnan(history.rows[1].value("lm_loss").value()));
  EXPECT_EQ(history.rows[2].kind, MetricsKind::validation);
  EXPECT_FALSE(history.rows[2].value("learning_rate").has_value());
}

MetricsRow start_at(std::int64_t iteration) {
  MetricsRow row{MetricsKind::start, iteration, 8 * iteration, 64 * iteration, 1, {}};
  row.texts = {{"device", "a \"GPU\""}};
  row.options = {{"lr", "0.001"}, {"data_path", "[x] {y}"}};
  return row;
}

TEST(MetricsFile, StartsKeepTextsAndOptions) {
  const std::optional<MetricsRow> row = metrics_from_json(to_json(start_at(3)));
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->text("device"), "a \"GPU\"");
  EXPECT_EQ(row->text("gone"), "");
  EXPECT_EQ(row->options, start_at(3).options);
}

TEST(MetricsFile, ResumingTakesOutWhatIsMeasuredAgainAndWhatIsDamaged) {
  const TemporaryFolder folder;
  const auto path = folder.file("metrics.jsonl", "");
  {
    MetricsFile file(path, 0);
    for (int i = 1; i <= 5; ++i) file.add(metrics_row(report_at(i, i), i));
  }
  std::ofstream(path, std::ios::app) << R"({"kind":"train","iterat)";
  EXPECT_EQ(read_metrics(path).damaged_lines, 1);
  MetricsFile file(path, 3);
  file.add(metrics_row(report_at(4, 40), 9));
  const MetricsHistory history = read_metrics(path);
  EXPECT_EQ(history.damaged_lines, 0);
  ASSERT_EQ(history.rows.size(), 4u);
  EXPECT_EQ(history.rows[3].value("lm_loss"), 40.0);
  const MetricsHistory earlier = read_metrics(folder.path() / "metrics-earlier.jsonl");
  EXPECT_EQ(earlier.damaged_lines, 1);
  ASSERT_EQ(earlier.rows.size(), 2u);
  EXPECT_EQ(earlier.rows[0].value("lm_loss"), 4.0);
}

TEST(MetricsFile, NewRunInTheFolderOfAnotherErasesNothing) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl",
             earlier = folder.path() / "metrics-earlier.jsonl";
  std::string written;
  for (int run = 1; run <= 3; ++run) {
    MetricsFile file(path, 0);
    file.add(start_at(0));
    file.add(metrics_row(report_at(run, run), run));
    EXPECT_EQ(read_metrics(path).rows.size(), 2u);
    EXPECT_EQ(run == 1 ? "" : read_file(earlier), written);
    written += read_file(path);
  }
}

TEST(MetricsFile, RowsThatCannotBeSetAsideStayAndDoNotCount) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  { MetricsFile(path, 0).add(metrics_row(report_at(7, 7), 7)); }
  std::filesystem::create_symlink("/dev/full", folder.path() / "metrics-earlier.jsonl");
  Warnings warnings;
  MetricsFile file(path, 3, warnings.take());
  file.add(start_at(3));
  file.add(metrics_row(report_at(4, 4), 4));
  EXPECT_EQ(warnings.lines.size(), 1u);
  EXPECT_NE(read_file(path).find("\"iteration\":7"), std::string::npos);
  const MetricsHistory history = read_metrics(path);
  ASSERT_EQ(history.rows.size(), 2u);
  EXPECT_EQ(history.rows[1].iteration, 4);
}

TEST(MetricsFile, GoingOnTakesOutTheEvaluationsOfTheEnd) {
  const TemporaryFolder folder;
  const auto path = folder.file("metrics.jsonl", "");
  const auto evaluation = [](std::int64_t final_samples) {
    return metrics_row(
        EvaluationReport{
            .iteration = 5, .losses = {{"lm loss", 2.0}}, .final_samples = final_samples},
        16, 2048, 7);
  };
  {
    MetricsFile file(path, 0);
    file.add(evaluation(0));
    file.add(evaluation(80));
  }
  const MetricsFile later(path, 6);
  EXPECT_EQ(read_metrics(path).rows.size(), 2u);
  const MetricsFile there(path, 5);
  ASSERT_EQ(read_metrics(path).rows.size(), 1u);
  EXPECT_FALSE(read_metrics(path).rows[0].value("final_samples").has_value());
}

TEST(MetricsFile, WhatIsNoRowIsRefused) {
  for (const char* line :
       {"[]", "{}", "{\"kind\":\"train\"}", "nonsense",
        "{\"kind\":\"train\",\"iteration\":1,\"samples\":1,\"tokens\":-1}",
        "{\"kind\":\"train\",\"iteration\":1.5,\"samples\":1,\"tokens\":1}",
        "{\"kind\":\"train\",\"iteration\":1,\"samples\":1,\"tokens\":1,\"a\":[1]}",
        "{\"kind\":\"other\",\"iteration\":1,\"samples\":1,\"tokens\":1}"}) {
    EXPECT_FALSE(metrics_from_json(line).has_value()) << line;
  }
  EXPECT_FALSE(metrics_from_json(std::string(1000000, '[')).has_value());
}

TEST(LogFile, WhatADiskHasNoRoomForIsWrittenLater) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  std::filesystem::create_symlink("/dev/full", path);
  Warnings warnings;
  MetricsFile file(path, 0, warnings.take());
  for (int i = 1; i <= 3; ++i) file.add(metrics_row(report_at(i, i), i));
  ASSERT_EQ(warnings.lines.size(), 1u) << "once, not for every row";
  EXPECT_NE(warnings.lines[0].find("No space left on device; training goes on"), std::string::npos)
      << warnings.lines[0];
  std::filesystem::remove(path);
  file.add(metrics_row(report_at(4, 4), 4));
  EXPECT_EQ(read_metrics(path).rows.size(), 4u);
  ASSERT_EQ(warnings.lines.size(), 2u);
  EXPECT_NE(warnings.lines[1].find("nothing of it is lost"), std::string::npos);
}

TEST(LogFile, FolderThatIsNotThereYetAndFolderThatIsTakenAway) {
  const TemporaryFolder folder;
  const auto away = folder.path() / "disk", path = away / "run" / "metrics.jsonl";
  Warnings warnings;
  MetricsFile file(path, 0, warnings.take());
  file.add(metrics_row(report_at(1, 1), 1));
  EXPECT_EQ(warnings.lines.size(), 1u);
  std::filesystem::create_directory(away);
  file.add(metrics_row(report_at(2, 2), 2));
  EXPECT_EQ(read_metrics(path).rows.size(), 2u);
  std::filesystem::remove_all(away / "run");
  file.add(metrics_row(report_at(3, 3), 3));
  EXPECT_EQ(read_metrics(path).rows.size(), 1u) << "a file that was removed is not written to";
  EXPECT_EQ(warnings.lines.size(), 2u);
}

TEST(LogFile, KeepsABoundedNumberOfRecords) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "log";
  std::filesystem::create_symlink("/dev/full", path);
  Warnings warnings;
  LogFile file({.name = [&path] { return path; }, .warn = warnings.take(), .most_waiting = 10});
  for (const char* record : {"aaaa", "bbbb", "cccc", "dddd"}) {
    file.add(record);
    EXPECT_FALSE(file.flush());
  }
  std::filesystem::remove(path);
  EXPECT_TRUE(file.flush());
  EXPECT_EQ(read_file(path), "ccccdddd");
  EXPECT_NE(warnings.lines.at(1).find("2 records of it are lost"), std::string::npos);
}

TEST(LogFile, DeletesNoFileThatItDidNotMake) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "log";
  LogFile file({.name = [&path] { return path; }});
  file.add("a record");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 2, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const bool written = file.flush();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written);
  EXPECT_FALSE(std::filesystem::exists(path)) << "of its own file nothing stays";
  std::filesystem::create_symlink("log", path);  // leads to itself: cannot be opened
  EXPECT_FALSE(file.flush());
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  std::filesystem::remove(path);
  EXPECT_TRUE(file.flush());
  EXPECT_EQ(read_file(path), "a record");
}

TEST(LogFile, EventsGoOnInANewFileWithAHeaderOfItsOwn) {
  const TemporaryFolder folder;
  const auto where = folder.path() / "events";
  EventFile events(where, 5);
  const auto first = events.path();
  std::filesystem::remove_all(where);
  std::ofstream(where) << "a file where the folder was";
  events.add_scalar("lost for now", 1, 1, 6);
  events.flush();
  std::filesystem::remove(where);
  events.add_scalar("b", 2, 2, 7);
  events.flush();
  const auto all = payloads(events.path());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_NE(all[0].find("brain.Event:2"), std::string::npos);
  EXPECT_NE(all[1].find("lost for now"), std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(where), {}), 1);
}

}  // namespace
}  // namespace bloomery

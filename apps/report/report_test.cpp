#include "apps/report/report.h"

#include <gtest/gtest.h>

#include "apps/common/command_case.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "train/report/metrics_file.h"

namespace bloomery {
namespace {

TEST(ReportCommand, DrawsFromTheMetricsAlone) {
  const TemporaryFolder folder;
  {
    MetricsFile file(folder.path() / "metrics.jsonl", 0);
    for (int i = 1; i <= 30; ++i) {
      file.add({MetricsKind::train, i, i, i, 1000.0 + i, {{"lm_loss", 2 + 5.0 / i}}});
    }
  }
  const std::string page = folder.path() / "report.html";
  EXPECT_EQ(expect_command({"report", folder.path()}), page + "\n");
  EXPECT_NE(read_file(page).find("aria-label=\"Loss\""), std::string::npos);
}

TEST(ReportCommand, SaysWhatItNeeds) {
  const TemporaryFolder folder;
  const Outcome none = run_command({"report", folder.path()});
  EXPECT_EQ(none.code, kBadInput);
  EXPECT_TRUE(none.says("give the folder of a training run")) << none.errors;
  folder.file("metrics.jsonl", "");
  const Outcome no_model = run_command({"report", folder.path(), "--samples", "Once"});
  EXPECT_EQ(no_model.code, kBadInput);
  EXPECT_TRUE(no_model.says("no checkpoint in")) << no_model.errors;
}

}  // namespace
}  // namespace bloomery

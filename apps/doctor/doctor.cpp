#include "apps/doctor/doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/common/pager.h"
#include "apps/doctor/findings.h"
#include "base/wrap.h"
#include "build_config.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorOptions {
  bool json = false;
};

void describe(OptionTable& t, DoctorOptions& o) {
  t.section("report");
  t.add("json", o.json, "Print one JSON object instead of a page.");
}

Json to_json(const FindingList& findings, bool healthy) {
  Json rows = Json::array();
  for (const Finding& finding : findings) {
    rows.push_back({{"section", finding.section},
                    {"name", finding.name},
                    {"status", name(finding.health)},
                    {"value", finding.value},
                    {"advice", finding.advice}});
  }
  return {{"ok", healthy},
          {"version", build::version},
          {"cuda_build", build::cuda},
          {"findings", std::move(rows)}};
}

void print(const FindingList& findings, std::ostream& out) {
  const std::size_t columns = output_columns(out);
  std::size_t width = 0;
  for (const Finding& finding : findings) {
    width = std::max(width, finding.name.size());
  }
  std::string section;
  for (const Finding& finding : findings) {
    if (finding.section != section) {
      section = finding.section;
      out << '\n' << section << '\n';
    }
    const char* mark = finding.health == Health::good       ? "  ok  "
                       : finding.health == Health::optional ? "  --  "
                                                            : "  !!  ";
    const std::size_t indent = 6 + width + 2;
    std::string row = mark + finding.name;
    row.resize(indent, ' ');
    out << wrapped(row, finding.value, columns, indent) << '\n';
    if (!finding.advice.empty()) {
      out << wrapped(std::string(indent, ' ') + "->", finding.advice, columns, indent + 3) << '\n';
    }
  }
}

}  // namespace

std::string name(Health health) {
  return health == Health::good ? "ok" : health == Health::optional ? "optional" : "problem";
}

int doctor(const Arguments& arguments, std::ostream& out) {
  DoctorOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery doctor [OPTIONS]\n\nChecks devices and libraries of this machine, and "
          "prints the command that installs what is missing. Exits with 0 when everything that "
          "this build needs is there, otherwise with 1.\n\nexample:\n  bloomery doctor\n")) {
    return kFinished;
  }
  FindingList findings, gpus;
  const bool gpu_present = examine_gpus(gpus);
  examine_machine(findings);
  examine_libraries(findings, gpu_present);
  findings.insert(findings.end(), gpus.begin(), gpus.end());
  const auto count = [&findings](Health health) {
    return std::count_if(findings.begin(), findings.end(),
                         [health](const Finding& f) { return f.health == health; });
  };
  const bool healthy = count(Health::bad) == 0;
  if (options.json) {
    out << to_json(findings, healthy).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    out << "bloomery " << build::version << (build::cuda ? ", CUDA and CPU" : ", CPU only") << '\n';
    print(findings, out);
    out << '\n'
        << (healthy ? "Ready." : "Not ready: see the rows with !!.")
        << " (!! problems: " << count(Health::bad) << ", -- optional: " << count(Health::optional)
        << ")\n";
  }
  return healthy ? kFinished : kFailed;
}

}  // namespace bloomery

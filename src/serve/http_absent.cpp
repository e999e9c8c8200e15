// In place of the server where the build found no libmicrohttpd.
#include "base/error.h"
#include "serve/http.h"

namespace bloomery {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      "this program was built without libmicrohttpd, so that it cannot serve: install "
      "libmicrohttpd-dev and build it again (`make` does both)");
}

}  // namespace

void require_free_port(const std::string&, int) { refuse(); }

std::unique_ptr<HttpServer> make_http_server(const std::string&, int, const HttpLimits&,
                                             HttpServer::Handler) {
  refuse();
}

}  // namespace bloomery

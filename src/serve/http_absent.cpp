// In place of the server where the build found no libmicrohttpd.
#include "base/error.h"
#include "serve/http.h"

namespace bloomery {

std::unique_ptr<HttpServer> make_http_server(const std::string&, int, const HttpLimits&,
                                             HttpServer::Handler) {
  throw Error(
      "this program was built without libmicrohttpd, so that it cannot serve: install "
      "libmicrohttpd-dev and build it again (`make` does both)");
}

}  // namespace bloomery

#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/doctor/report/doctor_report.hpp"
#include "core/file_test_support.hpp"
#include "engine/llama/model/gguf_writer_test_support.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Status = Check::Status;

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    machine.cores = 4;
    machine.features = {"AVX2"};
    machine.memory_total = std::uint64_t{8} << 30U;
    machine.memory_available = std::uint64_t{4} << 30U;
    machine.open_files_soft = 1024;
    machine.open_files_hard = 1048576;
    machine.somaxconn = 4096;
  }

  std::string write(const std::string& name, std::string_view content) {
    const std::string path = directory_.path(name);
    std::ofstream(path, std::ios::binary) << content;
    ::chmod(path.c_str(), 0600);
    return path;
  }

  const Check& only() {
    static const Check kNone;
    EXPECT_THAT(checks, SizeIs(1));
    return checks.size() == 1 ? checks.front() : kNone;
  }

  Status model_status(const std::string& path) {
    config.engine.model = path;
    checks.clear();
    check_model(checks, machine, config);
    return only().status;
  }

  test::TemporaryDirectory directory_;
  MachineFacts machine;
  ServeConfig config;
  Checks checks;
};

std::string gguf() {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add_tensor("a", {1024}, {});
  writer.add_tensor("b", {1024}, {1.0F});
  std::ostringstream out;
  writer.write(out);
  return out.str();
}

TEST_F(DoctorTest, AGoodModelIsOk) {
  EXPECT_EQ(model_status(write("m.gguf", gguf())), Status::ok);
  EXPECT_THAT(only().finding, HasSubstr("2 tensors"));
}

TEST_F(DoctorTest, TheContextMustFitIntoMemory) {
  const std::string model = SLUICE_SOURCE_DIR "/models/sluice-tiny.gguf";
  config.engine.slots = 4;
  config.engine.context = 1024;
  EXPECT_EQ(model_status(model), Status::ok);
  config.engine.context = 100'000'000;
  EXPECT_EQ(model_status(model), Status::fail);
  EXPECT_THAT(only().finding, HasSubstr("4 slots"));
}

TEST_F(DoctorTest, ABadModelFailsAndSaysWhy) {
  EXPECT_EQ(model_status(directory_.path("none.gguf")), Status::fail);
  EXPECT_THAT(only().finding, HasSubstr("no such file"));
  EXPECT_EQ(model_status(write("short", gguf().substr(0, 5000))), Status::fail);
  EXPECT_THAT(only().finding, HasSubstr("incomplete"));
  EXPECT_EQ(model_status(write("html", std::string(4096, '<'))), Status::fail);
  EXPECT_THAT(only().finding, HasSubstr("not a GGUF file"));
  EXPECT_FALSE(only().fix.empty());
}

TEST_F(DoctorTest, AModelMustFitIntoMemory) {
  const std::string path = write("m.gguf", gguf());
  machine.memory_available = 4000;
  EXPECT_EQ(model_status(path), Status::warn);
  machine.memory_total = 4000;
  EXPECT_EQ(model_status(path), Status::fail);
}

TEST_F(DoctorTest, ADirectoryIsNoModel) {
  EXPECT_EQ(model_status("/"), Status::fail);
  EXPECT_THAT(checks.back().finding, HasSubstr("is a directory"));
}

TEST_F(DoctorTest, AModelNeedsItsDevice) {
  config.engine.backend = "abacus";
  EXPECT_EQ(model_status("/nonexistent"), Status::fail);
  EXPECT_THAT(checks.back().finding, HasSubstr("there is no device \"abacus\""));
}

TEST_F(DoctorTest, NoModelIsAWarningUnlessNoneIsNeeded) {
  EXPECT_EQ(model_status(""), Status::warn);
  config.engine.kind = EngineKind::synthetic;
  EXPECT_EQ(model_status(""), Status::ok);
}

TEST_F(DoctorTest, OpenFilesMustSufficeForTheConnections) {
  check_limits(checks, machine, config);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].status, Status::ok);
  EXPECT_EQ(checks[1].status, Status::ok);

  checks.clear();
  machine.open_files_hard = config.http.max_connections;
  machine.somaxconn = 128;
  check_limits(checks, machine, config);
  EXPECT_EQ(checks[0].status, Status::fail);
  EXPECT_THAT(checks[0].fix, HasSubstr("ulimit"));
  EXPECT_EQ(checks[1].status, Status::warn);
}

TEST_F(DoctorTest, WarnsOfAMachineThatIsTooSmall) {
  machine.features.clear();
  machine.memory_available = 1 << 20;
  check_machine(checks, machine, config);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].status, Status::warn);
  EXPECT_EQ(checks[1].status, Status::warn);
}

TEST_F(DoctorTest, ATakenPortFails) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  config.port = ntohs(address.sin_port);

  check_ports(checks, config);
  EXPECT_EQ(only().status, Status::fail);
  EXPECT_THAT(only().finding, HasSubstr("is already in use"));
  EXPECT_THAT(only().fix, HasSubstr("ss -ltnp"));
  ::close(fd);

  checks.clear();
  config.port = 0;
  check_ports(checks, config);
  EXPECT_EQ(only().status, Status::ok);
}

TEST_F(DoctorTest, AUnixSocketMustBeFree) {
  check_unix_socket(checks, config);
  EXPECT_THAT(checks, SizeIs(0));
  config.unix_path = "/nonexistent/x.sock";
  check_unix_socket(checks, config);
  EXPECT_EQ(only().status, Status::fail);
  EXPECT_THAT(only().finding, HasSubstr("/nonexistent/x.sock"));
  checks.clear();
  config.unix_path = ::testing::TempDir() + "/doctor.sock";
  check_unix_socket(checks, config);
  EXPECT_EQ(only().status, Status::ok);
  EXPECT_NE(::access(config.unix_path.c_str(), F_OK), 0) << "the check leaves nothing behind";
}

TEST_F(DoctorTest, EveryPlaceIsChecked) {
  config.listen = {{.host = "127.0.0.1", .port = 0}, {.host = "192.0.2.1", .port = 0}};
  check_ports(checks, config);
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].status, Status::ok);
  EXPECT_EQ(checks[1].status, Status::fail);
  checks.clear();
  check_access(checks, config);
  EXPECT_THAT(only().finding, HasSubstr("192.0.2.1 can be reached from other machines"));
  checks.clear();
  config.tcp = false;
  check_ports(checks, config);
  EXPECT_TRUE(checks.empty());
}

TEST_F(DoctorTest, PlacesAreCheckedTogether) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(fd);  // now the port is free
  const std::uint16_t port = ntohs(address.sin_port);
  config.listen = {{.host = "0.0.0.0", .port = port}, {.host = "127.0.0.1", .port = port}};
  check_ports(checks, config);
  ASSERT_THAT(checks, SizeIs(2));
  EXPECT_EQ(checks[0].status, Status::ok);
  EXPECT_EQ(checks[1].status, Status::fail);
}

TEST_F(DoctorTest, TheLogFileMustBeWritable) {
  check_log(checks, config);
  EXPECT_TRUE(checks.empty());
  config.log.file = directory_.path("log");
  check_log(checks, config);
  EXPECT_EQ(only().status, Status::ok);
  EXPECT_NE(::access(config.log.file.c_str(), F_OK), 0) << "the check leaves nothing behind";
  std::filesystem::create_symlink("later", directory_.path("good"));
  std::filesystem::create_symlink("good", directory_.path("indirect"));
  std::filesystem::create_symlink("none/later", directory_.path("dangling"));
  std::filesystem::create_symlink("dangling", directory_.path("indirectly_dangling"));
  for (const char* const link : {"good", "indirect"}) {
    checks.clear();
    config.log.file = directory_.path(link);
    check_log(checks, config);
    EXPECT_EQ(only().status, Status::ok);
  }
  for (const std::string& path :
       {directory_.path(), directory_.path("none/log"), directory_.path("dangling"),
        directory_.path("indirectly_dangling")}) {
    checks.clear();
    config.log.file = path;
    check_log(checks, config);
    EXPECT_EQ(only().status, Status::fail);
  }
}

TEST_F(DoctorTest, AForeignAddressFails) {
  config.host = "192.0.2.1";
  config.port = 0;
  check_ports(checks, config);
  EXPECT_EQ(only().status, Status::fail);
}

/// A key and a certificate for it. The certificate is valid from `from` to `to`, in seconds from
/// now.
struct Identity {
  std::string certificate;
  std::string key;
};

Identity make_identity(long from, long to) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), to);
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const auto text_of = [](auto&& write) {
    BIO* memory = BIO_new(BIO_s_mem());
    write(memory);
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory, &data);
    std::string text(data, static_cast<std::size_t>(size));
    BIO_free(memory);
    return text;
  };
  return {text_of([&](BIO* out) { PEM_write_bio_X509(out, certificate.get()); }),
          text_of([&](BIO* out) {
            PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

constexpr long kDay = 24L * 60 * 60;

class DoctorTlsTest : public DoctorTest {
 protected:
  const Check& check(const Identity& identity) {
    config.tls_certificate = write("cert.pem", identity.certificate);
    config.tls_key = write("key.pem", identity.key);
    return check_again();
  }
  const Check& check_again() {
    checks.clear();
    check_tls(checks, config, std::chrono::system_clock::now());
    return only();
  }
};

TEST_F(DoctorTlsTest, AGoodPairIsOk) {
  const Check& good = check(make_identity(-kDay, 100 * kDay));
  EXPECT_EQ(good.status, Status::ok);
  EXPECT_THAT(good.finding, HasSubstr("more days"));
}

TEST_F(DoctorTlsTest, TimesAreChecked) {
  EXPECT_EQ(check(make_identity(-kDay, 10 * kDay)).status, Status::warn);
  EXPECT_THAT(check(make_identity(-2 * kDay, -60)).finding, HasSubstr("expired"));
  EXPECT_EQ(only().status, Status::fail);
  EXPECT_THAT(check(make_identity(3600, kDay)).finding, HasSubstr("not valid yet"));
  EXPECT_EQ(only().status, Status::fail);
}

TEST_F(DoctorTlsTest, FilesAreChecked) {
  const Identity one = make_identity(-kDay, 100 * kDay);
  const Identity other = make_identity(-kDay, 100 * kDay);
  EXPECT_THAT(check({one.certificate, other.key}).finding,
              HasSubstr("does not belong to the certificate"));
  EXPECT_EQ(only().status, Status::fail);
  EXPECT_THAT(check({"rubbish", one.key}).finding, HasSubstr("Cannot use the TLS certificate"));
  EXPECT_THAT(check({one.certificate, "rubbish"}).finding, HasSubstr("Cannot use the TLS key"));
  check(one);
  ::chmod(config.tls_key.c_str(), 0644);
  EXPECT_EQ(check_again().status, Status::warn);
  config.tls_key = directory_.path("none.pem");
  EXPECT_THAT(check_again().finding, HasSubstr("No such file"));
}

TEST_F(DoctorTest, AccessFromElsewhereNeedsKeysAndTls) {
  check_access(checks, config);
  EXPECT_EQ(only().status, Status::ok);
  config.host = "0.0.0.0";
  checks.clear();
  check_access(checks, config);
  EXPECT_EQ(only().status, Status::warn);
  EXPECT_THAT(only().fix, HasSubstr("--api-key-file"));
  config.access.api_keys = {{"a", "0123456789abcdef"}};
  checks.clear();
  check_access(checks, config);
  EXPECT_THAT(only().fix, HasSubstr("--tls-cert"));
  config.tls_certificate = "cert.pem";
  checks.clear();
  check_access(checks, config);
  EXPECT_EQ(only().status, Status::ok);

  config.access.api_key_file = write("keys", "");
  ::chmod(config.access.api_key_file.c_str(), 0644);
  checks.clear();
  check_access(checks, config);
  EXPECT_EQ(only().fix, "chmod 600 " + config.access.api_key_file);
}

TEST(DoctorReport, SaysWhatToDo) {
  const Checks checks = {{Status::ok, "cpu", "4 cores", ""},
                         {Status::warn, "backlog", "128", "raise it"},
                         {Status::fail, "port", "taken \x1b[2J", "give another"}};
  EXPECT_TRUE(any_failed(checks));
  EXPECT_EQ(text_report(checks, Style::plain()),
            "ok    cpu         4 cores\n"
            "warn  backlog     128\n"
            "                  -> raise it\n"
            "fail  port        taken [2J\n"
            "                  -> give another\n"
            "\nNot ready to serve: 1 failure, 1 warning\n");
  EXPECT_THAT(text_report({checks[0]}, Style::plain()), HasSubstr("\nReady to serve\n"));

  const Checks clauses = {{Status::ok, "a", "b", "", "RFC 1"},
                          {Status::note, "c", "d", "", "RFC 2"}};
  EXPECT_EQ(text_report(clauses, Style::plain(), "Well"),
            "ok    a           b\n"
            "note  c           d\n"
            "                     RFC 2\n"
            "\nWell\n");
  EXPECT_THAT(json_report(clauses), HasSubstr(R"("clause":"RFC 1")"));

  const auto parsed = parse_json(json_report(checks));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->at("ok"), false);
  EXPECT_EQ(
      parsed->at("checks").at(1),
      (json::value{
          {"status", "warn"}, {"subject", "backlog"}, {"finding", "128"}, {"fix", "raise it"}}));
}

TEST(Machine, KnowsThisOne) {
  const MachineFacts machine = read_machine();
  EXPECT_GT(machine.cores, 0U);
  EXPECT_GT(machine.memory_total, 0U);
  EXPECT_GE(machine.memory_total, machine.memory_available);
  EXPECT_GE(machine.open_files_hard, machine.open_files_soft);
}

TEST(Machine, NeverLowersTheLimitOfOpenFiles) {
  const std::uint64_t before = read_machine().open_files_soft;
  EXPECT_EQ(raise_open_files(1), before);
  EXPECT_EQ(read_machine().open_files_soft, before);
}

TEST(Printable, TakesOutWhatMovesTheCursor) {
  EXPECT_EQ(printable("a\x1b[31mb\r\n\tc\x7f"), "a[31mb\n\tc");
  EXPECT_EQ(printable_json("{\"\xc3\xa4\":\"\x7f\xc2\x9b\u202E\"}\n"),
            "{\"\xc3\xa4\":\"\\u007f\\u009b\\u202e\"}\n");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J \xc3\xa9 \xc2\xa0"),
            "2J \xc3\xa9 \xc2\xa0");
  EXPECT_EQ(printable("a\u202Eb\u2066c\u200Fd\u061Ce\u2028f \u200D\u05D0\U0001F600"),
            "abcdef \u200D\u05D0\U0001F600");
  EXPECT_EQ(printable("\x9b"
                      "31m\xe2\x80"),
            "\uFFFD31m\uFFFD");
}

}  // namespace
}  // namespace sluice

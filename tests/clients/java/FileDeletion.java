import static java.util.Collections.singletonMap;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.rest.RESTCatalog;

/**
 * What Iceberg's own Java client deletes by itself. Takes the address of the Iceberg protocol, at which {@code
 * test_file_deletion.py} has made database {@code sales} with tables {@code orders} and {@code lines}, branch {@code
 * draft} and tag {@code v1}, and database {@code plain} without branches, whose {@code orders} has an old snapshot.
 */
public class FileDeletion {
  private final RESTCatalog catalog;
  private final Map<String, Check> checks = new LinkedHashMap<>();

  private interface Check {
    void run() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    try (RESTCatalog catalog = new RESTCatalog()) {
      catalog.setConf(new Configuration());
      catalog.initialize("lake", Map.of("uri", arguments[0], "warehouse", "lake"));
      System.exit(new FileDeletion(catalog).runAll() ? 0 : 1);
    }
  }

  private FileDeletion(RESTCatalog catalog) {
    this.catalog = catalog;
    checks.put("expireSnapshots is refused on a branch", () -> refusesToExpire("sales$branch_draft"));
    checks.put("expireSnapshots is refused on main while there are branches", () -> refusesToExpire("sales"));
    checks.put("expireSnapshots is refused on a tag", () -> refusesToExpire("sales$tag_v1"));
    checks.put("a client that sets gc.enabled is refused all the same", this::enabledByTheClient);
    checks.put("commits that let metadata fall out of the log", this::manyCommits);
    checks.put("a table of a branch is replaced as a whole", this::replace);
    checks.put("a table is dropped on a branch, with a purge", this::purge);
    checks.put("control: expireSnapshots deletes files where there are no branches", () -> expire(table("plain", "orders")));
  }

  private boolean runAll() {
    boolean allHold = true;
    for (Map.Entry<String, Check> check : checks.entrySet()) {
      try {
        check.getValue().run();
        System.out.println("ok      " + check.getKey());
      } catch (Throwable failure) {
        allHold = false;
        System.out.println("FAILED  " + check.getKey());
        failure.printStackTrace(System.out);
      }
    }
    return allHold;
  }

  private Table table(String database, String name) {
    return catalog.loadTable(TableIdentifier.of(database, name));
  }

  /** Expires all snapshots but the current one, and deletes the files that only they have. */
  private static void expire(Table table) {
    table.expireSnapshots().expireOlderThan(System.currentTimeMillis()).retainLast(1).commit();
  }

  private void refusesToExpire(String database) {
    Table table = table(database, "orders");
    try {
      expire(table);
    } catch (ValidationException refused) {
      return;
    }
    throw new AssertionError("it was expired: " + table.properties());
  }

  private void enabledByTheClient() {
    table("sales$branch_draft", "orders").updateProperties().set("gc.enabled", "true").commit();
    refusesToExpire("sales$branch_draft");
  }

  private void manyCommits() {
    Table table = table("sales$branch_draft", "orders");
    for (String owner : new String[] {"ada", "bob", "eve"}) {
      table.updateProperties().set("owner", owner).commit();
    }
  }

  private void replace() {
    TableIdentifier lines = TableIdentifier.of("sales$branch_draft", "lines");
    Transaction replacement =
        catalog
            .buildTable(lines, catalog.loadTable(lines).schema())
            .withProperties(singletonMap("owner", "ada"))
            .replaceTransaction();
    replacement.commitTransaction();
    if (catalog.loadTable(lines).currentSnapshot() != null) {
      throw new AssertionError("the table has rows of before");
    }
  }

  private void purge() {
    if (!catalog.dropTable(TableIdentifier.of("sales$branch_draft", "lines"), true)) {
      throw new AssertionError("there was no such table");
    }
  }
}

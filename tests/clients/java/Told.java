// What the test outside says, and how it is spoken with; js/run.js does the same.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.cometd.client.http.jetty.JettyHttpClientTransport;
import org.cometd.client.transport.ClientTransport;
import org.cometd.client.websocket.jakarta.WebSocketTransport;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.transport.HttpClientTransportDynamic;
import org.eclipse.jetty.ee10.websocket.jakarta.client.JakartaWebSocketClientContainer;
import org.eclipse.jetty.io.ClientConnector;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.ajax.JSON;

final class Told {
    static final long TIMEOUT_S = 30;
    private static final BufferedReader LINES = new BufferedReader(new InputStreamReader(System.in));

    interface Scenario {
        void play(Map<?, ?> context) throws Exception;
    }

    /** Plays the scenario each time that the test tells a context. */
    static void play(String name, Scenario scenario) throws IOException {
        System.out.println(name);
        for (String line = LINES.readLine(); line != null; line = LINES.readLine()) {
            try {
                scenario.play((Map<?, ?>)((Map<?, ?>)new JSON().fromJSON(line)).get("context"));
            } catch (Throwable failure) {
                failure.printStackTrace();
                System.exit(1);
            }
            System.out.println("@end");
        }
        System.exit(0);
    }

    /** Asks the test outside for something that only it can do, and waits until it is done. */
    static void ask(String request) throws IOException {
        System.out.println("@" + request);
        LINES.readLine();
    }

    static <T> T take(BlockingQueue<T> queue, String what) throws InterruptedException {
        T item = queue.poll(TIMEOUT_S, TimeUnit.SECONDS);
        if (item == null) {
            throw new AssertionError("waited in vain for " + what);
        }
        return item;
    }

    static ClientTransport transportOf(String name) throws Exception {
        // Certificates of tests are signed by nobody.
        SslContextFactory.Client trusting = new SslContextFactory.Client(true);
        trusting.setEndpointIdentificationAlgorithm(null);
        ClientConnector connector = new ClientConnector();
        connector.setSslContextFactory(trusting);
        HttpClient http = new HttpClient(new HttpClientTransportDynamic(connector));
        http.start();
        if (name.equals("websocket")) {
            var sockets = new JakartaWebSocketClientContainer(http);
            sockets.start();
            return new WebSocketTransport(null, null, sockets);
        }
        return new JettyHttpClientTransport(null, http);
    }
}

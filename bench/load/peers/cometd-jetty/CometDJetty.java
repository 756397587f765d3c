import org.cometd.bayeux.server.BayeuxServer;
import org.cometd.server.BayeuxServerImpl;
import org.cometd.server.ext.AcknowledgedMessagesExtension;
import org.cometd.server.http.JSONHttpTransport;
import org.cometd.server.http.jakarta.CometDServlet;
import org.cometd.server.websocket.common.AbstractWebSocketTransport;
import org.cometd.server.websocket.jetty.JettyWebSocketTransport;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Context;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.websocket.server.WebSocketUpgradeHandler;

/** CometD for Java on embedded Jetty, at /cometd: WebSocket and long-polling, with acks. Usage: CometDJetty PORT */
public class CometDJetty {
    private static final String PATHS = "/cometd/*";

    public static void main(String[] words) throws Exception {
        BayeuxServerImpl bayeux = new BayeuxServerImpl();
        bayeux.setOption(AbstractWebSocketTransport.COMETD_URL_MAPPING_OPTION, PATHS);
        bayeux.addTransport(new JettyWebSocketTransport(bayeux));
        bayeux.addTransport(new JSONHttpTransport(bayeux));
        bayeux.addExtension(new AcknowledgedMessagesExtension());

        ServletContextHandler context = new ServletContextHandler("/");
        context.setAttribute(BayeuxServer.ATTRIBUTE, bayeux);
        bayeux.setOption(Context.class.getName(), context.getContext());
        ServletHolder holder = new ServletHolder(new CometDServlet());
        holder.setAsyncSupported(true);
        // The servlet maps the WebSocket when it starts, which must not wait for a request.
        holder.setInitOrder(1);
        context.addServlet(holder, PATHS);

        Server server = new Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(words[0]));
        server.addConnector(connector);
        context.insertHandler(WebSocketUpgradeHandler.from(server, context));
        server.setHandler(context);
        server.start();
        server.join();
    }
}
